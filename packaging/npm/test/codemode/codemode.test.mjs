// What the corpus cannot say of the adapter: refusals before anything is sent, many executions at once, what never happens.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { CodemodeExecutor, limitResult } from "../../src/codemode/index.js";
import { ExecutorError, RemoteExecutor } from "../../src/index.js";
import { startDaemon } from "../support/daemon.mjs";

let daemon;
let native;
let executor;
before(async () => {
  daemon = await startDaemon({ flags: ["--workers", "4"] });
  native = new RemoteExecutor({ url: daemon.url });
  executor = new CodemodeExecutor({ executor: native, timeout: 5000 });
});
after(async () => {
  await native?.close();
  await daemon?.stop();
});

const provider = (fns, more = {}) => [{ name: "codemode", fns, ...more }];

/** A native executor that keeps what it is asked, and answers with outcome or fails with it. */
function recorder(outcome = { value: { value: 1 }, logs: [] }) {
  const asked = [];
  return { asked, execute: async (request) => {
    asked.push(request);
    if (outcome instanceof Error) throw outcome;
    return outcome;
  } };
}

test("names are refused before anything is sent, and without logs", async () => {
  const stub = recorder();
  const x = new CodemodeExecutor(stub);
  const binding = { callTool: async () => 1 };
  for (const [providers, connectors, error] of [
    [[{ name: "console", fns: {} }], [], 'Provider name "console" is reserved'],
    [[{ name: "a-b", fns: {} }], [], 'Provider name "a-b" is not a valid JavaScript identifier'],
    [[{ name: "a", fns: {} }, { name: "a", fns: {} }], [], 'Duplicate provider name "a"'],
    [[], ["Promise"], 'Connector name "Promise" is reserved'],
    [[], ["1"], 'Connector name "1" is not a valid JavaScript identifier'],
    [[{ name: "a", fns: {} }], ["a"], 'Duplicate name "a" (connector clashes with provider)'],
    [[], ["a", "a"], 'Duplicate name "a" (connector clashes with provider)'],
    [provider({ "a-b": async () => 1, "a.b": async () => 2 }), [], 'Tool names "a-b" and "a.b" both sanitize to "a_b" in provider "codemode"'],
  ]) {
    const result = await x.execute("async () => 1", providers, { connectors: connectors.map((name) => ({ name, binding })) });
    assert.deepEqual(result, { result: undefined, error });
    assert.ok(!("logs" in result));
  }
  assert.deepEqual(stub.asked, []);
});

test("V11: it never rejects, and no failure is a success", async () => {
  const nowhere = new CodemodeExecutor({ url: "unix:/nowhere/at/all" });
  assert.match((await nowhere.execute("1", [])).error, /cannot connect/);
  await nowhere.close();
  for (const failure of [new ExecutorError("worker_crashed", "the worker died"), new ExecutorError("overloaded", ""), new TypeError(""), new ExecutorError("exception", "x", { logs: [null] }),
    Object.create(null), { get message() { throw null; } }, { message: Object.create(null) }]) {
    const result = await new CodemodeExecutor({ execute: () => Promise.reject(failure) }).execute("1", []);
    assert.ok(result.error && result.result === undefined);
    assert.deepEqual(result.logs, []);
  }
  const stub = new CodemodeExecutor(recorder());
  for (const [code, providers, options] of [[undefined, []], ["1", [null]], ["1", [{ name: "a" }]], ["1", [{}]], ["1", [], { connectors: 5 }], [Symbol("s"), []]]) {
    const result = await stub.execute(code, providers, options);
    assert.equal(typeof result, "object", String(code));
  }
  assert.ok((await new CodemodeExecutor(recorder({ value: null, logs: [] })).execute("1", [])).error);
});

test("every end for time has one text, and keeps the lines", async () => {
  const debug = [{ level: "debug", text: "a line", time: 0 }, { level: "warn", text: "1 call of codemode.x was still running", time: 1 }];
  for (const type of ["cpu_timeout", "wall_timeout", "total_timeout", "deadlock"]) {
    const result = await new CodemodeExecutor(recorder(new ExecutorError(type, "x", { logs: debug }))).execute("1", []);
    assert.deepEqual(result, { result: undefined, error: "Execution timed out", logs: ["a line"] });
  }
});

test("the time limit is 60 s unless given, and limits of the caller come first", async () => {
  const limitsOf = async (options) => {
    const stub = recorder();
    await new CodemodeExecutor(options ? { executor: stub, ...options } : stub).execute("1", []);
    const { cpuMs, wallMs, totalMs, heapMiB } = stub.asked[0].limits;
    return [cpuMs, wallMs, totalMs, heapMiB];
  };
  assert.deepEqual(await limitsOf(), [60_000, 60_000, 60_000, 128]);
  assert.deepEqual(await limitsOf({ timeout: 1500.2, limits: { heapMiB: 32 } }), [1501, 1501, 1501, 32]);
  assert.deepEqual(await limitsOf({ timeout: 0 }), [1, 1, 1, 128]);
  assert.throws(() => new CodemodeExecutor({ executor: recorder(), timeout: "soon" }), TypeError);
  assert.throws(() => new CodemodeExecutor({ executor: recorder(), globalOutbound: {} }), TypeError);
});

test("a bare record of functions is taken, with a warning", async () => {
  const warn = console.warn;
  const warned = [];
  console.warn = (text) => warned.push(text);
  try {
    assert.deepEqual(await executor.execute("codemode.add(1, 2)", { add: async (a, b) => a + b }), { result: 3, logs: [] });
  } finally {
    console.warn = warn;
  }
  assert.match(warned[0], /deprecated/);
});

test("executions run at once, and from within the tools of each other", async () => {
  const inner = async (n) => (await executor.execute(`async () => codemode.twice(${n})`, provider({ twice: async (x) => 2 * x }))).result;
  const outer = await Promise.all([1, 2].map((n) => executor.execute(`async () => [${n}, await codemode.run(${n})]`, provider({ run: inner }))));
  assert.deepEqual(outer.map(({ result }) => result), [[1, 2], [2, 4]]);
  let release;
  const together = new Promise((resolve) => (release = resolve));
  let waiting = 0;
  const meet = async () => {
    if (++waiting === 3) release();
    await together;
    return waiting;
  };
  const met = await Promise.all([1, 2, 3].map(() => executor.execute("codemode.meet()", provider({ meet }))));
  assert.deepEqual(met.map(({ result }) => result), [3, 3, 3]);
});

test("a tool that is late is not waited for, and harms nothing", async () => {
  let answer;
  const late = new Promise((resolve) => (answer = resolve));
  let begun = 0;
  const result = await executor.execute("async () => { codemode.late(); return 'done'; }", provider({ late: () => (begun++, late) }));
  assert.deepEqual(result, { result: "done", logs: [] });
  assert.equal(begun, 1);
  answer("too late");
  assert.deepEqual(await executor.execute("1", []), { result: 1, logs: [] });
});

test("bytes cross at any depth both ways, as bytes", async () => {
  const seen = [];
  const echo = async (value) => {
    seen.push(value);
    return { list: [value.a.b], buffer: Buffer.from("hi"), part: new Uint8Array([1, 2, 3, 4]).subarray(1, 3), plain: value.plain };
  };
  const { result } = await executor.execute("async () => codemode.echo({a: {b: new Uint8Array([0, 255]).subarray(1)}, c: new Uint16Array([258]), d: new ArrayBuffer(2), plain: 1})", provider({ echo }));
  assert.deepEqual(seen, [{ a: { b: new Uint8Array([255]) }, c: new Uint8Array([2, 1]), d: new ArrayBuffer(2), plain: 1 }]);
  assert.deepEqual(result, { list: [new Uint8Array([255])], buffer: new Uint8Array([104, 105]), part: new Uint8Array([2, 3]), plain: 1 });
});

// I3: nothing that the harness uses can be found from within, and what a program breaks is its own.
test("I3: a program does not reach the harness", async () => {
  for (const [code, want] of [
    ["typeof codemodeHost", "undefined"],
    ["Object.getOwnPropertyNames(globalThis).filter((name) => /codemode|host/i.test(name))", []],
    ["/mark/.test(codemode.add.toString()) && /[0-9a-f]{32}/.test(codemode.add.toString())", false],
    ["import('program.js').then(Object.keys, () => 'no')", "no"],
    ["Object.prototype.toJSON = function () { return Object.keys(this).some((key) => /^[0-9a-f]{32}$/.test(key)) ? { ...this, ['' + Object.keys(this)[0]]: 'constructor' } : this; }; const r = await codemode.seen(new Uint8Array([1])); delete Object.prototype.toJSON; return r", "object"],
    ["Array.prototype.push = Array.prototype.map = () => { throw 1 }; Reflect.apply = () => 2; String = () => 3; console.log(5); return codemode.add(1, 2)", 3],
    ["Promise.prototype.then = () => 1; return await codemode.add(1, 2)", 3],
    ["new Error().stack.includes('mark') || /[0-9a-f]{32}/.test(new Error().stack)", false],
  ]) {
    const fns = { add: async (a, b) => a + b, seen: async (value) => (value === null ? "null" : typeof value) };
    const { result, error } = await executor.execute(code, provider(fns));
    assert.deepEqual(error ?? result, want, code);
  }
});

test("connectors are asked by name, and their marks are errors of the program", async () => {
  const asked = [];
  const binding = { callTool: async (method, args) => {
    asked.push([method, args]);
    if (method === "wait") return { __codemode_control__: "pause" };
    if (method === "fail") return { __codemode_control__: "error", message: "it cannot" };
    if (method === "die") throw new TypeError("dead");
    return { method, args };
  } };
  const code = (method) => `async () => { try { return await db.${method}({ id: 1 }); } catch (e) { return e.message; } }`;
  const run = async (text) => (await executor.execute(text, [], { connectors: [{ name: "db", binding }] })).result;
  assert.deepEqual(await run(code("read")), { method: "read", args: { id: 1 } });
  assert.equal(await run(code("wait")), "__CODEMODE_PAUSE__");
  assert.equal(await run(code("fail")), "it cannot");
  assert.equal(await run(code("die")), "dead");
  assert.deepEqual(asked.map(([method]) => method), ["read", "wait", "fail", "die"]);
});

test("what a host object inherits is no tool", async () => {
  const fns = Object.create({ inherited: async () => "reached" }, { own: { value: async () => "own", enumerable: true } });
  for (const name of ["inherited", "constructor", "__proto__", "toString", "hasOwnProperty"]) {
    const { result } = await executor.execute(`async () => codemode.${name}().catch((e) => e.message)`, provider(fns));
    assert.equal(result, `Tool "${name}" not found`);
  }
  assert.equal((await executor.execute("codemode.own()", provider(fns))).result, "own");
});

test("code closes no wrapper", async () => {
  for (const code of ["1)(), (async () => 42", "}); throw 1; (() => {", "42 /*", "*/ 42", "});\n}\nexport default 1; (() => {", "return 1; }); console.log('out'); ({", "}, console.log('out'), () => {", "}; console.log('out'); {"]) {
    const { error, logs } = await executor.execute(code, []);
    assert.match(error, /^SyntaxError: /, code);
    assert.deepEqual(logs, []);
  }
});

// What this package cannot read, but the engine can, has its namespaces all the same.
test("statements of a newer language run", async () => {
  const { result } = await executor.execute("a = 1\n<!-- a comment of HTML\nreturn codemode.add(1, 2)".replace("a = 1", "let a = 1"), provider({ add: async (a, b) => a + b }));
  assert.equal(result, 3);
});

test("requests of programs go to the handler, or nowhere", async () => {
  const code = "async () => (await fetch('https://api.test/x', {method: 'POST', body: 'hi'})).text()";
  const open = new CodemodeExecutor({ executor: native, globalOutbound: async (request) => new Response(`${request.method} ${await request.text()}`) });
  assert.equal((await open.execute(code, [])).result, "POST hi");
  const named = new CodemodeExecutor({ executor: native, globalOutbound: { fetch: async (request) => new Response(request.url) } });
  assert.equal((await named.execute(code, [])).result, "https://api.test/x");
  assert.match((await executor.execute(code, [])).error, /no network/);
});

test("an executor of its own is made and closed", async () => {
  const own = new CodemodeExecutor({ url: daemon.url, timeout: 2000 });
  assert.deepEqual(await own.execute("() => 7", []), { result: 7, logs: [] });
  await own.close();
  assert.match((await own.execute("1", [])).error, /closed/);
  await executor.close(); // that one was given its executor
  assert.equal((await executor.execute("1", [])).result, 1);
});

test("results are limited where they are largest", async () => {
  const small = { a: [1, 2], b: "text" };
  assert.equal(limitResult(small), small);
  for (const whole of [1n, undefined, () => 1]) assert.equal(limitResult(whole, 1), whole);
  for (const value of [
    "x".repeat(1000), Array.from({ length: 1000 }, (_, i) => i), Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`key${i}`, i])),
    { keep: "short", long: "y".repeat(5000), list: Array(300).fill({ a: "z".repeat(50) }) }, [[[["deep".repeat(400)]]]], Array(50).fill("w".repeat(40)),
  ]) {
    for (const most of [60, 200, 1000]) {
      const got = limitResult(value, most);
      assert.ok(JSON.stringify(got).length <= most, `${JSON.stringify(got)} has more than ${most}`);
      assert.match(JSON.stringify(got), /TRUNCATED/);
    }
  }
  const { keep, long, list } = limitResult({ keep: "short", long: "y".repeat(5000), list: [1, 2, 3] }, 300);
  assert.deepEqual([keep, list, long.startsWith("yyy")], ["short", [1, 2, 3], true]);
  const limited = new CodemodeExecutor({ executor: native, maxResultChars: 100 });
  const { result } = await limited.execute("async () => 'r'.repeat(10_000)", []);
  assert.ok(result.length < 100 && /TRUNCATED/.test(result));
  assert.throws(() => new CodemodeExecutor({ executor: native, maxResultChars: 0 }), TypeError);
});

test("however little room there is, a result fits it", () => {
  const escapes = '\u0000"\\\n\ud800';
  const shapes = {
    text: "x".repeat(100), escapes: escapes.repeat(100), one: escapes, pairs: "😀".repeat(50), numbers: Array.from({ length: 100 }, (_, i) => i),
    texts: Array(20).fill(escapes), keys: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`${escapes}${i}`, i])),
    deep: [[[[{ a: { b: ["deep".repeat(40)] } }]]]], number: -1.2345678901234567e-300, none: null, flag: true, date: new Date(0), shadow: { toJSON: () => escapes.repeat(9) },
    nested: JSON.parse('['.repeat(2000) + ']'.repeat(2000)), mixed: [null, true, { k: [1, "two", { three: "3".repeat(99) }] }, []],
  };
  for (const [name, value] of Object.entries(shapes)) {
    const whole = JSON.stringify(value);
    for (let most = 2; most <= 60; most++) {
      const text = JSON.stringify(limitResult(value, most));
      assert.ok(text.length <= most, `${name} within ${most}: ${text}`);
      assert.notEqual(text, undefined);
      if (whole.length <= most) assert.equal(text, whole);
      else assert.notEqual(text, whole);
    }
  }
});

// RemoteExecutor over a real service with real workers.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { ExecutorError, RemoteExecutor } from "../src/index.js";
import { freePort, startDaemon } from "./support/daemon.mjs";
import { packageRoot } from "./support/repository.mjs";

let daemon;
let executor;

before(async () => {
  daemon = await startDaemon();
  executor = new RemoteExecutor({ url: daemon.url });
});
after(async () => {
  await executor?.close();
  await daemon?.stop();
});

const run = (code, more = {}) => executor.execute({ code, ...more });
const fails = (promise, type, check = () => true) => assert.rejects(promise, (error) => error instanceof ExecutorError && error.type === type && check(error) !== false);

test("a value, lines and figures", async () => {
  const { value, logs, stats } = await run("console.log('hi'); console.warn('careful'); ({a: [1, 2n]})");
  assert.deepEqual(value, { a: [1, 2n] });
  assert.deepEqual(logs.map(({ level, text }) => [level, text]), [["log", "hi"], ["warn", "careful"]]);
  assert.ok(stats.cpuMs > 0 && stats.limits.heapMiB > 0);
});

test("values of every kind go through the program and back", async () => {
  const shared = { n: 1 };
  const sent = {
    bytes: new Uint8Array([0, 255, 128]), date: new Date(5), map: new Map([["k", new Set([1n])]]), nothing: undefined,
    numbers: [NaN, -0, Infinity], holes: [, 1, ,], text: "\ud800", regexp: /a+/gi, url: new URL("https://a.test/x"),
    floats: new Float32Array([1.5]), boxed: Object("s"), a: shared, b: shared, "@tag": { "@bytes": "x" },
  };
  sent.self = sent;
  const { value } = await run("(input) => input", { input: sent });
  assert.deepEqual(value, sent);
  assert.equal(value.a, value.b);
  assert.equal(value.self, value);
  const { value: error } = await run("(input) => input", { input: Object.assign(new RangeError("far", { cause: "why" }), { code: "E" }) });
  assert.ok(error instanceof RangeError && error.message === "far" && error.cause === "why" && error.code === "E");
  const { value: blob } = await run("(input) => input", { input: new Blob(["text"], { type: "text/plain" }) });
  assert.equal(await blob.text(), "text");
});

test("V1 V3: tools get positional arguments, bytes as bytes", async () => {
  const seen = [];
  const { value } = await run("[await tools.put(new Uint8Array([0, 255, 128])), await tools.users.add(2, 3)]", {
    providers: { tools: { put: (...args) => void seen.push(args), users: { add: (a, b) => a + b } } },
  });
  assert.deepEqual(seen, [[new Uint8Array([0, 255, 128])]]);
  assert.deepEqual(value, [undefined, 5]);
});

test("many at once, by one signal too, are nothing that the runtime warns of", async () => {
  const warnings = [];
  const note = (warning) => warnings.push(String(warning));
  process.on("warning", note);
  const { signal } = new AbortController();
  const { value: same, retained } = await run("() => (i) => i", { retain: {} });
  const all = Array.from({ length: 24 }, (_, i) => executor.invoke(same, [i], i % 2 ? { signal } : {}));
  assert.deepEqual((await Promise.all(all)).map(({ value }) => value), all.map((_, i) => i));
  retained.dispose();
  await new Promise(setImmediate); // warnings come a turn later
  process.off("warning", note);
  assert.deepEqual(warnings, []);
});

test("a provider that is a function answers for every name", async () => {
  const { value } = await run("await any.thing(1)", { providers: { any: (path, args, { execution, call }) => [path, args, typeof execution, call] } });
  assert.deepEqual(value, [["thing"], [1], "string", 1]);
});

test("what a prototype has is no tool", async () => {
  class Tools {
    inherited() {}
  }
  const providers = { tools: Object.assign(new Tools(), { own: () => 1 }) };
  const { value } = await run("[typeof tools.own, typeof tools.inherited, typeof tools.constructor, typeof tools.__proto__]", { providers });
  assert.deepEqual(value, ["function", "undefined", "undefined", "undefined"]);
});

test("tools begin in the order of the calls", async () => {
  const order = [];
  await run("await Promise.all(Array.from({length: 50}, (_, i) => t.go(i)))", { providers: { t: { go: async (i) => void order.push(i) } } });
  assert.deepEqual(order, Array.from({ length: 50 }, (_, i) => i));
});

test("errors of tools keep name, message and code; other thrown values stay what they are", async () => {
  const code = "const r = []; for (const n of ['error', 'value', 'symbol', 'unsendable']) try { await t[n]() } catch (e) { r.push(e instanceof Error ? [e.name, e.message, e.code] : e) } r";
  const thrower = (value) => () => { throw value; };
  const { value } = await run(code, {
    form: "script",
    providers: { t: {
      error: thrower(Object.assign(new RangeError("far"), { code: "E_FAR" })), value: thrower({ a: 1n }),
      symbol: thrower(Symbol("s")), unsendable: () => () => {},
    } },
  });
  assert.deepEqual(value.slice(0, 2), [["RangeError", "far", "E_FAR"], { a: 1n }]);
  assert.equal(value[2][1], "the tool threw what is no error");
  assert.match(value[3][1], /a function cannot cross/);
});

test("whatever a tool throws or gives, its call is answered", async () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const unreadable = (key) => Object.defineProperty(new Error("x"), key, { get() { throw new Error("mine"); } });
  const thrown = [unreadable("message"), unreadable("name"), unreadable("code"), Object.assign(new Error(), { message: Object.create(null) }), proxy];
  const { value } = await run("async (count) => { const r = []; for (let i = 0; i <= count; i++) await t.call(i).catch((e) => r.push(`${e}`)); return r; }", {
    input: thrown.length, limits: { wallMs: 20_000 },
    // Escaped, the last is longer than a string can be.
    providers: { t: { call(i) { if (i < thrown.length) throw thrown[i]; return Array(600).fill("\0".repeat(150_000)); } } },
  });
  assert.deepEqual(value, [...thrown.map(() => "Error: the tool threw what is no error"), "RangeError: the tool's result is too large"]);
});

test("a call that is open at the end is called off", async () => {
  let signal;
  let calledOff;
  const off = new Promise((resolve) => (calledOff = resolve));
  const { value } = await run("t.slow(); await t.quick(); 'done'", {
    providers: { t: {
      slow() { signal = this.signal; this.signal.addEventListener("abort", calledOff); return new Promise(() => {}); },
      quick: () => {},
    } },
  });
  assert.equal(value, "done");
  await off;
  assert.ok(signal.aborted);
});

test("endings are typed", async () => {
  await fails(run("null.x"), "exception", (e) => e.thrownName === "TypeError" && e.position.line === 1 && e.ran && !e.retryable);
  await fails(run("console.log('before'); throw {code: 5}"), "exception", (e) => e.thrown.code === 5 && e.logs[0].text === "before");
  await fails(run("throw new Error('x', {cause: [1n]})"), "exception", (e) => e.cause[0] === 1n);
  await fails(run("let = ;"), "syntax", (e) => e.position.sourceLine === "let = ;");
  await fails(run("for (;;);", { limits: { cpuMs: 50 } }), "cpu_timeout");
  await fails(run("await new Promise(() => {})"), "deadlock");
  await fails(run("() => () => 1"), "result_unserializable");
  await fails(run("import('nowhere')"), "exception");
  await fails(run("1", { limits: { cpuMs: 0 } }), "invalid_params", (e) => e.field === "limits.cpuMs" && !e.ran);
  await fails(run("1", { providers: { class: {} } }), "invalid_provider");
  await fails(run("x".repeat(70 << 20)), "invalid_params");
  await fails(run("1", { colour: 1 }), "invalid_params", (e) => e.field === "colour");
  await fails(run("1", { onlog() {} }), "invalid_params", (e) => e.field === "onlog");
  for (const none of [undefined, {}]) await fails(executor.execute(none), "invalid_code");
  for (const code of [5, () => 1]) await fails(run(code), "invalid_params", (e) => e.field === "code");
});

test("E5: what was printed is kept when a program is killed, and who was called", async () => {
  await fails(run("await t.did(); console.log('a'); for (;;);", { limits: { cpuMs: 100 }, providers: { t: { did: () => 1 } } }), "cpu_timeout",
    (e) => e.logs[0].text === "a" && e.calls[0].status === "ok");
});

test("lines and states are heard as they come", async () => {
  const heard = [];
  const states = [];
  let first;
  const printed = new Promise((resolve) => (first = resolve));
  await run("console.log('one'); await t.wait(); console.error('two')", {
    onLog: ({ level, text }) => first(heard.push([level, text])),
    onState: ({ state }) => states.push(state),
    providers: { t: { wait: () => printed } }, // it comes while the program waits for it
  });
  assert.deepEqual(heard, [["log", "one"], ["error", "two"]]);
  assert.equal(states.at(-1), "running");
});

test("a signal cancels, and the outcome tells what had been printed", async () => {
  const controller = new AbortController();
  const ended = run("console.log('begun'); t.go(); for (;;);", { signal: controller.signal, providers: { t: { go: () => controller.abort(new Error("enough")) } } });
  await fails(ended, "cancelled", (e) => e.logs[0].text === "begun");
  await fails(run("1", { signal: AbortSignal.abort() }), "cancelled", (e) => !e.ran);
});

test("modules of the request are imported", async () => {
  const { value } = await run("import a from 'a'; import j from './j.json' with {type: 'json'}; export default [a, j.x]", {
    modules: { a: { source: "export default 1" }, "j.json": { source: '{"x":2}', type: "json" } },
  });
  assert.deepEqual(value, [1, 2]);
});

test("the host answers the program's requests", async () => {
  const seen = [];
  const fetch = async (request) => {
    seen.push([request.method, request.url, request.headers.get("x-a"), await request.text()]);
    if (request.url.endsWith("/no")) throw new TypeError("not there");
    return new Response(new Uint8Array([1, 2, 3]), { status: 201, headers: { "x-b": "2" } });
  };
  const code = "const r = await fetch('http://api.test/x?q', {method: 'POST', headers: {'x-a': '1'}, body: 'hi'}); [r.status, r.headers.get('x-b'), await r.bytes(), await fetch('http://api.test/no').catch(e => e.name)]";
  const { value } = await run(code, { fetch });
  assert.deepEqual(value, [201, "2", new Uint8Array([1, 2, 3]), "TypeError"]);
  assert.deepEqual(seen, [["POST", "http://api.test/x?q", "1", "hi"], ["GET", "http://api.test/no", null, ""]]);
});

test("many programs run at once over one connection, also from within a tool", async () => {
  const values = await Promise.all(Array.from({ length: 8 }, (_, i) => run(`await t.echo(${i})`, { providers: { t: { echo: (n) => n } } })));
  assert.deepEqual(values.map(({ value }) => value), [0, 1, 2, 3, 4, 5, 6, 7]);
  const nested = { again: async (n) => (await run(`${n} * 2`)).value };
  assert.equal((await run("await t.again(21)", { providers: { t: nested } })).value, 42);
});

test("a megabyte each way", async () => {
  const bytes = new Uint8Array(1 << 20).map((_, i) => i * 31);
  const { value } = await run("async (b) => t.echo(b)", { input: bytes, providers: { t: { echo: (b) => b } } });
  assert.deepEqual(value, bytes);
});

test("an id that is in use is refused before it is sent", async () => {
  const first = run("await t.go()", { execution: "mine", providers: { t: { go: async () => {
    await fails(run("1", { execution: "mine" }), "invalid_params", (e) => e.field === "execution");
    return 7;
  } } } });
  assert.equal((await first).value, 7);
});

test("a callback that throws is the caller's own bug", () => {
  const code = `import { RemoteExecutor } from "${packageRoot}src/index.js";
process.on("uncaughtException", (error) => console.log("uncaught", error.message));
const onLog = () => { throw new Error("mine"); };
console.log((await new RemoteExecutor({ url: "${daemon.url}" }).execute({ code: "console.log('x'); 1", onLog })).value);`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", code]);
  assert.equal(String(stdout), "uncaught mine\n1\n");
});

test("the service tells its limits", async () => {
  const { protocol, limits, server } = await executor.server();
  assert.equal(protocol, "1");
  assert.ok(limits.cpuMs >= 1000 && server.name !== "");
});

test("tokens, refusals and TCP", async () => {
  const file = join(daemon.folder, "tokens");
  await writeFile(file, "me 0123456789abcdef0123\n", { mode: 0o600 });
  const guarded = await startDaemon({ port: await freePort(), flags: ["--token-file", file] });
  const known = new RemoteExecutor({ url: guarded.tcp, token: "0123456789abcdef0123" });
  const unknown = new RemoteExecutor({ url: guarded.tcp, token: "not the one that it wants" });
  const without = new RemoteExecutor({ url: guarded.tcp.replace("tcp:", "ws:") });
  try {
    assert.equal((await known.execute({ code: "6 * 7" })).value, 42);
    await fails(unknown.execute({ code: "1" }), "unauthorized", (e) => !e.retryable);
    await fails(without.execute({ code: "1" }), "unauthorized");
  } finally {
    await Promise.all([known, unknown, without].map((x) => x.close()));
    await guarded.stop();
  }
});

const openssl = spawnSync("openssl", ["version"]).status === 0;

test("over TLS, a service is held to its certificate", { skip: !openssl && "there is no openssl" }, async () => {
  const [cert, key] = ["cert", "key"].map((name) => join(daemon.folder, `${name}.pem`));
  const made = spawnSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert]);
  assert.equal(made.status, 0, String(made.stderr));
  const port = await freePort();
  const secret = await startDaemon({ port, flags: ["--tls-cert", cert, "--tls-key", key] });
  const known = new RemoteExecutor({ url: `wss://localhost:${port}`, tls: { ca: await readFile(cert) } });
  const unknown = new RemoteExecutor({ url: `wss://127.0.0.1:${port}` });
  try {
    assert.equal((await known.execute({ code: "6 * 7" })).value, 42);
    await fails(unknown.execute({ code: "1" }), "internal", (e) => /self-signed/.test(e.message));
  } finally {
    await Promise.all([known.close(), unknown.close()]);
    await secret.stop();
  }
});

test("after the service was restarted the next program finds it", async () => {
  const first = await startDaemon();
  const path = first.url.slice("unix:".length);
  const x = new RemoteExecutor({ url: first.url });
  let second;
  try {
    assert.equal((await x.execute({ code: "1" })).value, 1);
    const killed = new Promise((resolve) => {
      const running = x.execute({ code: "await t.go(); for (;;);", providers: { t: { go: () => resolve([running, first.kill("SIGKILL")]) } } });
      running.catch(() => {});
    });
    const [running] = await killed;
    const next = x.execute({ code: "2" }).catch((error) => error);
    await first.kill("SIGKILL");
    second = await startDaemon({ path });
    await fails(running, "internal", (e) => e.retryable && /connection lost/.test(e.message)); // the new service knows no such session
    await next; // it was sent before that was known
    assert.equal((await x.execute({ code: "3" })).value, 3);
  } finally {
    await x.close();
    await second?.stop();
    await first.stop();
  }
});

test("close cancels what runs, and nothing runs afterwards", async () => {
  const x = new RemoteExecutor({ url: daemon.url });
  let closing;
  const running = x.execute({ code: "await t.go(); for (;;);", providers: { t: { go: () => void (closing = x.close()) } } });
  await fails(running, "cancelled");
  await closing;
  await fails(x.execute({ code: "1" }), "draining");
  await x.close();
});

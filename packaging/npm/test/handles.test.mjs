// What a retained program leaves for its host, over a real service with real workers.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ExecutorError, RemoteExecutor } from "../src/index.js";
import { startDaemon } from "./support/daemon.mjs";

let daemon;
let executor;

before(async () => {
  daemon = await startDaemon({ flags: ["--retained-executions", "2", "--retained-per-caller", "2"] });
  executor = new RemoteExecutor({ url: daemon.url });
});
after(async () => {
  await executor?.close();
  await daemon?.stop();
});

const keep = (code, more) => executor.execute({ code, retain: true, ...more });
const fails = (promise, type, check = () => true) => assert.rejects(promise, (error) => error instanceof ExecutorError && error.type === type && check(error) !== false);

/** Resolves once nothing is retained any more. */
async function released(retained, f) {
  for (let i = 0; i < 100; i++) {
    try {
      await f();
    } catch (error) {
      assert.equal(error.type, "handle_unknown");
      return error;
    }
    await sleep(20);
  }
  throw new Error(`${retained.id} stays`);
}

test("functions keep their state, and can be disposed of", async () => {
  const seen = [];
  const { value, retained } = await keep("let n = 0; return { up: (by) => n += by, self: { v: 5, get() { return this.v } }, tell: (x) => tools.note(x, n), same: (f) => typeof f }", {
    providers: { tools: { note: (...args) => void seen.push(args) } },
  });
  assert.ok(retained.idleMs > 0 && retained.ttlMs > 0 && retained.id.length > 10);
  assert.equal(await value.up(2), 2);
  assert.equal(await value.up(3), 5);
  assert.equal(await value.self.get(), 5);
  assert.equal(await value.same(value.up), "function");
  await value.tell(new Uint8Array([1]));
  assert.deepEqual(seen, [[new Uint8Array([1]), 5]]);
  retained.dispose();
  const gone = await released(retained, () => value.up(1));
  assert.match(gone.message, /released/);
});

test("a program whose functions were all disposed of ends", async () => {
  const { value, retained } = await keep("return [() => 1, () => 2]");
  {
    value[0].dispose();
    assert.equal(await value[1](), 2);
    value[1][Symbol.dispose]?.();
    value[1].dispose();
  }
  await released(retained, value[1]);
});

test("what a call ends in is its own", async () => {
  const { value, retained } = await keep("return { fail: () => { console.log('before'); throw new TypeError('no') }, spin: () => { for (;;); }, more: () => [() => 'inner'] }");
  await fails(value.fail(), "exception", ({ thrownName, logs }) => assert.deepEqual([thrownName, logs[0].text], ["TypeError", "before"]));
  const [inner] = await value.more();
  assert.equal(await inner(), "inner");
  await assert.rejects(value.more(Symbol()), /symbol/);
  const full = await executor.invoke(inner, [], { limits: { cpuMs: 500 }, onLog() {} });
  assert.equal(full.value, "inner");
  assert.ok(full.stats.limits.cpuMs === 500);
  for (const field of ["onlog", "providers"]) await fails(executor.invoke(inner, [], { [field]() {} }), "invalid_params", (e) => e.field === field);
  await fails(executor.invoke(value.spin, [], { limits: { cpuMs: 100 } }), "cpu_timeout");
  await fails(inner(), "handle_unknown", ({ message }) => /cpu_timeout/.test(message));
  retained.dispose();
});

test("calls run side by side, and one may be cancelled", async () => {
  const { value } = await keep("let open; const gate = new Promise(r => open = r); return { wait: async (n) => { console.log(n); await gate; return n }, open: () => open(), never: () => new Promise(() => {}) }");
  const waiting = [1, 2, 3].map((n) => executor.invoke(value.wait, [n]));
  await value.open();
  const done = await Promise.all(waiting);
  assert.deepEqual(done.map(({ value, logs }) => [value, logs.map(({ text }) => text)]), [[1, ["1"]], [2, ["2"]], [3, ["3"]]]);
  const stop = new AbortController();
  const never = executor.invoke(value.never, [], { signal: stop.signal });
  setTimeout(() => stop.abort(new Error("enough")), 50);
  await fails(never, "cancelled", ({ message }) => /enough/.test(message));
  await fails(value.wait(4), "handle_unknown");
});

test("calls begin in the order in which they were made, and before what is released after them", async () => {
  for (let round = 0; round < 10; round++) {
    const { value: v, retained } = await keep("const list = []; return { push: (n) => { list.push(n) }, list: () => list, gen: (async function* () { for (let n = 0;; n++) yield n })() }");
    const calls = [1, 2, 3, 4, 5].map((n) => v.push(n));
    assert.deepEqual(await v.list(), [1, 2, 3, 4, 5]);
    await Promise.all(calls);
    const items = await Promise.all([1, 2, 3, 4, 5].map(() => v.gen.next()));
    assert.deepEqual(items.map((item) => item.value), [0, 1, 2, 3, 4]);
    const last = [v.list(), v.gen.next()];
    retained.dispose();
    assert.deepEqual(await Promise.all(last), [[1, 2, 3, 4, 5], { done: false, value: 5 }]);
    await fails(v.list(), "handle_unknown");
  }
});

test("an argument that has to be read holds nobody up, and a handle among them may be disposed of", async () => {
  const { value: v, retained } = await keep("return { f: (x) => typeof x, g: () => 1 }");
  const leave = new AbortController();
  const never = executor.invoke(v.f, [new Response(new ReadableStream({}))], { signal: leave.signal });
  assert.equal(await v.g(), 1);
  leave.abort();
  await fails(never, "cancelled");
  const call = v.f(v.g);
  v.g.dispose();
  assert.equal(await call, "function");
  retained.dispose();
  await fails(v.f(1), "handle_unknown");
});

test("after close a call does not wait for an argument that has to be read", async () => {
  const other = new RemoteExecutor({ url: daemon.url });
  const { value: f } = await other.execute({ code: "return (x) => typeof x", retain: true });
  await other.close();
  await fails(f(new Response(new ReadableStream({}))), "draining");
});

test("a call with a signal that is aborted already is not sent, and what is disposed of is not called", async () => {
  const { value: f, retained } = await keep("let n = 0; return async () => { await new Promise((r) => setTimeout(r, 20)); return ++n }");
  await fails(executor.invoke(f, [], { signal: AbortSignal.abort() }), "cancelled");
  const call = f();
  f.dispose();
  await fails(f(), "handle_unknown");
  assert.equal(await call, 1);
  await released(retained, f);
});

test("no value is a promise of the program's making", async () => {
  await fails(keep("return [{ then: () => 1 }]"), "result_unserializable", (error) => error.message.includes("result[0].then"));
  const { value: f, retained } = await keep("let n = 0; return () => ({ get then() { return n++ ? () => 1 : undefined } })");
  await fails(f(), "result_unserializable");
  retained.dispose();
});

test("iterators are pulled, and streams", async () => {
  const { value, retained } = await keep(`
    const log = [];
    async function* count() { try { for (let i = 0; ; i++) { log.push(i); yield i } } finally { log.push('over') } }
    return { count: count(), stream: ReadableStream.from(['a', 'b', 'c']), bytes: new Blob(['text']).stream(), log: () => log }`);
  const got = [];
  for await (const n of value.count) {
    got.push(n);
    if (n === 2) break;
  }
  assert.deepEqual(got, [0, 1, 2]);
  assert.deepEqual(await value.log(), [0, 1, 2, "over"]);
  const chunks = [];
  for await (const chunk of value.stream) chunks.push(chunk);
  assert.deepEqual(chunks, ["a", "b", "c"]);
  assert.equal(await new Response(value.bytes).text(), "text");
  retained.dispose();
});

test("what is retained is bounded, and belongs to its session", async () => {
  const kept = [await keep("return () => 1"), await keep("return () => 2")];
  await fails(keep("return () => 3"), "overloaded", ({ retryAfterMs }) => retryAfterMs > 0);
  const other = new RemoteExecutor({ url: daemon.url });
  const { value: answer } = await other.execute({ code: "1 + 1" }); // others have their workers
  assert.equal(answer, 2);
  await other.close();
  for (const { retained } of kept) retained.dispose();
  await released(kept[1].retained, kept[1].value);
  const again = await keep("return () => 4");
  assert.equal(await again.value(), 4);
  again.retained.dispose();
});

test("ten thousand handles are given back", async () => {
  const { value, retained } = await keep("return Array.from({ length: 10000 }, (_, i) => () => i)");
  assert.equal(await value[9999](), 9999);
  for (const f of value.slice(0, 9999)) f.dispose();
  assert.equal(await value[9999](), 9999);
  await fails(value[0](), "handle_unknown");
  value[9999].dispose();
  await released(retained, value[9999]);
});

test("a session that is past its age stays for what it retains", async () => {
  const aged = new RemoteExecutor({ url: daemon.url, maxSessionAgeMs: 200 });
  const keeping = aged.execute({ code: "await new Promise(r => setTimeout(r, 400)); return { up: () => 1, more: () => [() => 2] }", retain: true });
  await sleep(250);
  assert.equal((await aged.execute({ code: "1" })).value, 1); // it went to another session, and the first one is retired
  const { value } = await keeping;
  assert.equal(await value.up(), 1);
  const more = value.more(); // released while it is under way
  value.more.dispose();
  value.up.dispose();
  const [inner] = await more;
  assert.equal(await inner(), 2);
  inner.dispose();
  await aged.close();
});

test("a stopped program lets go of its session", async () => {
  const aged = new RemoteExecutor({ url: daemon.url, maxSessionAgeMs: 100 });
  const { value } = await aged.execute({ code: "return { spin: () => { for (;;); } }", retain: true });
  const { session } = await aged.server();
  await fails(aged.invoke(value.spin, [], { limits: { cpuMs: 100 } }), "cpu_timeout");
  assert.notEqual((await aged.server()).session, session);
  await fails(value.spin(), "handle_unknown");
  await aged.close();
});

test("what is garbage is released", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  await Promise.all([keep("return [() => 1, (function* () {})()]"), keep("return new Blob(['x']).stream()")]); // all places, and nobody holds them
  for (let i = 0; ; i++) {
    collect();
    try {
      return (await keep("return () => 1")).retained.dispose();
    } catch (error) {
      assert.ok(error.type === "overloaded" && i < 200, error.message);
      await sleep(20);
    }
  }
});

test("a session ends with what it retains", async () => {
  const own = new RemoteExecutor({ url: daemon.url });
  const { value } = await own.execute({ code: "return () => 1", retain: true });
  assert.equal(await value(), 1);
  await own.close();
  await fails(value(), "draining");
  for (let i = 0; ; i++) { // its place is free soon
    try {
      const kept = [await keep("return () => 1"), await keep("return () => 2")];
      for (const { retained } of kept) retained.dispose();
      return;
    } catch (error) {
      assert.ok(error.type === "overloaded" && i < 100);
      await sleep(20);
    }
  }
});

test("without retain a function cannot cross", () => fails(executor.execute({ code: "return () => 1" }), "result_unserializable"));

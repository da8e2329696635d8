// Sessions that outlive their connections, against a real service over a wire that is cut.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import test, { after, before } from "node:test";
import { ExecutorError, RemoteExecutor } from "../src/index.js";
import { startDaemon } from "./support/daemon.mjs";
import { packageRoot } from "./support/repository.mjs";
import { wireTo } from "./support/wire.mjs";

let daemon;
before(async () => (daemon = await startDaemon()));
after(() => daemon?.stop());

async function withWire(use, service = daemon) {
  const wire = await wireTo(service.url.slice("unix:".length));
  const executor = new RemoteExecutor({ url: wire.url });
  try {
    await use(executor, wire);
  } finally {
    await executor.close();
    await wire.close();
  }
}

test("a program and its tool outlive their connection", async () => {
  await withWire(async (executor, wire) => {
    let calls = 0;
    const go = async () => {
      calls++;
      wire.cut();
      return "answer";
    };
    const { value, logs } = await executor.execute({ code: "console.log('a'); const r = await t.go(); console.log('b'); r", providers: { t: { go } } });
    assert.deepEqual([value, calls, logs.map(({ text }) => text)], ["answer", 1, ["a", "b"]]);
  });
});

test("every call is made once and in order, however often the wire is cut", async () => {
  await withWire(async (executor, wire) => {
    const seen = [];
    const heard = [];
    let random = 7;
    let cuts = 0;
    const programs = [1, 2].map((p) => executor.execute({
      code: `let sum = 0; for (let i = 0; i < 150; i++) { console.log(i); sum += await t.twice(${p}, i, 'x'.repeat(i * 20)); } sum`,
      form: "script",
      providers: { t: { twice: async (program, i, text) => {
        seen.push([program, i, text.length]);
        random = (random * 48271) % 2147483647;
        if (random % 12 === 0) {
          cuts++;
          if (random % 24 === 0) wire.cut(); // before the answer, or when it may be on its way
          else setImmediate(wire.cut);
        }
        return 2 * i;
      } } },
      onLog: ({ text }) => heard.push([p, Number(text)]),
    }));
    const values = (await Promise.all(programs)).map(({ value }) => value);
    assert.deepEqual(values, [150 * 149, 150 * 149]);
    assert.ok(cuts > 10, `cut ${cuts} times`);
    for (const p of [1, 2]) {
      assert.deepEqual(seen.filter(([program]) => program === p), Array.from({ length: 150 }, (_, i) => [p, i, i * 20]));
      assert.deepEqual(heard.filter(([program]) => program === p), Array.from({ length: 150 }, (_, i) => [p, i]));
    }
  });
});

test("what is sent while there is no connection arrives", async () => {
  await withWire(async (executor, wire) => {
    await executor.execute({ code: "1" });
    wire.down = true;
    wire.cut();
    while (wire.open > 0) await new Promise(setImmediate);
    const later = executor.execute({ code: "t.echo('later')", providers: { t: { echo: (x) => x } } });
    setTimeout(() => (wire.down = false), 300);
    assert.equal((await later).value, "later");
  });
});

test("where the service keeps no sessions, a lost connection is the end", async () => {
  const forgetful = await startDaemon({ flags: ["--resume-window", "0s"] });
  try {
    await withWire(async (executor, wire) => {
      const ended = executor.execute({ code: "await t.go(); for (;;);", providers: { t: { go: wire.cut } } });
      await assert.rejects(ended, (error) => error instanceof ExecutorError && error.type === "internal" && error.retryable && /connection lost/.test(error.message));
      assert.equal((await executor.execute({ code: "2" })).value, 2);
    }, forgetful);
  } finally {
    await forgetful.stop();
  }
});

test("a service that stops lets programs end, also over a wire that is cut", async () => {
  const stopping = await startDaemon();
  try {
    await withWire(async (executor, wire) => {
      let stopped;
      const stop = async () => {
        stopped = stopping.kill("SIGTERM");
        await new Promise((resolve) => setTimeout(resolve, 50));
        wire.cut();
        return "stopping";
      };
      assert.equal((await executor.execute({ code: "await t.stop()", providers: { t: { stop } } })).value, "stopping");
      await stopped;
    }, stopping);
  } finally {
    await stopping.stop();
  }
});

test("close ends a session whose connection is gone", async () => {
  const left = await startDaemon();
  try {
    await withWire(async (executor, wire) => {
      await executor.execute({ code: "return () => 1", retain: true }); // or there is nothing to resume
      wire.down = true;
      wire.cut();
      while (wire.open > 0) await new Promise(setImmediate);
      await executor.close();
    }, left);
  } finally {
    await left.kill("SIGKILL"); // it would wait for the client to come back
    await left.stop();
  }
});

test("a session of which nothing is wanted is resumed where that is possible, and else keeps no process alive", { timeout: 20_000 }, async () => {
  await withWire(async (executor, wire) => {
    await executor.execute({ code: "1" });
    wire.cut();
    while (wire.open > 0) await new Promise(setImmediate);
    while (wire.open === 0) await new Promise(setImmediate); // or a service that stops waits for this client
    assert.equal((await executor.execute({ code: "2" })).value, 2);

    // The service would keep a session for 30 s.
    const code = `import { RemoteExecutor } from "${packageRoot}src/index.js";
      console.log((await new RemoteExecutor({ url: "${wire.url}" }).execute({ code: "3" })).value);
      await new Promise((resolve) => process.stdin.once("end", resolve).resume());
      setTimeout(() => {}, 200); // in which it hears of the break`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["pipe", "pipe", "inherit"] });
    const left = new Promise((resolve) => child.on("exit", resolve));
    assert.equal(String(await new Promise((resolve) => child.stdout.once("data", resolve))), "3\n");
    wire.down = true;
    wire.cut();
    child.stdin.end();
    assert.equal(await left, 0);
  });
});

test("what is retained outlives a connection on which nothing runs", async () => {
  await withWire(async (executor, wire) => {
    const { value: next } = await executor.execute({ code: "let n = 0; return () => ++n", retain: true });
    assert.equal(await next(), 1);
    wire.cut();
    while (wire.open > 0) await new Promise(setImmediate);
    assert.equal(await next(), 2);
    await next.dispose?.();
  });
});

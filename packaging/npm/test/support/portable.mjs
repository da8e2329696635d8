// What has to work on every runtime. It imports nothing but the package.
import { ExecutorError, RemoteExecutor } from "../../src/index.js";

const equal = (got, want) => {
  const [a, b] = [got, want].map((value) => JSON.stringify(value));
  if (a !== b) throw new Error(`got ${a}, want ${b}`);
};

/** Runs programs by an executor of these options. Resolves to "ok", or rejects with what is wrong. */
export async function check(options) {
  const executor = new RemoteExecutor(options);
  try {
    await programs(executor);
    await endings(executor);
    await requests(executor);
  } finally {
    await executor.close();
  }
  const closed = await executor.execute({ code: "1" }).catch((error) => error.type);
  equal(closed, "draining");
  return "ok";
}

async function programs(executor) {
  const lines = [];
  const { value, logs } = await executor.execute({
    code: "async (input) => { console.log('hi'); return [input, await t.add(2n, 3n), await t.bytes(), await Promise.all([1, 2, 3].map(t.twice))]; }",
    input: { date: new Date(5), map: new Map([["k", new Uint8Array([0, 255])]]), text: "é😀\ud800" },
    providers: { t: { add: (a, b) => a + b, bytes: () => new Uint8Array(100_000).fill(7), twice: async (n) => 2 * n } },
    onLog: ({ text }) => lines.push(text),
  });
  const [input, sum, bytes, list] = value;
  equal([input.date.getTime(), [...input.map.get("k")], input.text, sum === 5n, list], [5, [0, 255], "é😀\ud800", true, [2, 4, 6]]);
  equal([bytes.length, bytes.every((byte) => byte === 7)], [100_000, true]);
  equal([logs.map(({ text }) => text), lines], [["hi"], ["hi"]]);
}

async function endings(executor) {
  const ending = (request) => executor.execute(request).then(() => "none", (error) => [error instanceof ExecutorError, error.type]);
  const controller = new AbortController();
  const t = { stop: () => controller.abort(), fail: () => { throw Object.assign(new RangeError("far"), { code: "E" }); } };
  equal(await ending({ code: "null.x" }), [true, "exception"]);
  equal(await ending({ code: "for (;;);", limits: { cpuMs: 50 } }), [true, "cpu_timeout"]);
  equal(await ending({ code: "t.stop(); for (;;);", providers: { t }, signal: controller.signal }), [true, "cancelled"]);
  const { value } = await executor.execute({ code: "await t.fail().catch((e) => [e.name, e.message, e.code])", providers: { t } });
  equal(value, ["RangeError", "far", "E"]);
}

async function requests(executor) {
  const fetch = async (request) => new Response(`${request.method} ${request.url} ${await request.text()}`, { status: 202 });
  const { value } = await executor.execute({ code: "const r = await fetch('http://a.test/', {method: 'POST', body: 'x'}); [r.status, await r.text()]", fetch });
  equal(value, [202, "POST http://a.test/ x"]);
}

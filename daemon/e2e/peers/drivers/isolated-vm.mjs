// A minimal executor on isolated-vm: an isolate of 64 MB and a context for each program, tools as asynchronous
// references, values copied, a deadline for what computes and one for what waits.
import ivm from "isolated-vm";

const deadline = 60_000; // ms

const around = (code) => `
const lines = [];
const print = (prefix) => (...parts) => { lines.push(prefix + parts.map(String).join(" ")); };
globalThis.console = { log: print(""), warn: print("[warn] "), error: print("[error] ") };
const passing = { arguments: { copy: true }, result: { promise: true, copy: true } };
const codemode = new Proxy({}, { get: (_, tool) => (...args) => callTool.apply(undefined, [tool, args], passing) });
(async () => ({ value: await (${code})(), lines }))()`;

export async function run(code, tools) {
  const isolate = new ivm.Isolate({ memoryLimit: 64 });
  let timer;
  try {
    const context = await isolate.createContext();
    await context.global.set("callTool", new ivm.Reference((tool, args) => tools[tool](...args)));
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("timed out")), deadline);
    });
    const done = context.eval(around(code), { timeout: deadline, promise: true, copy: true });
    return (await Promise.race([done, late])).value;
  } finally {
    clearTimeout(timer);
    isolate.dispose();
  }
}

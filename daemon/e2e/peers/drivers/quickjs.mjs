// A minimal executor on quickjs-emscripten: a runtime of 64 MB and a context for each program. Arguments and answers of
// tools cross as JSON, bytes as a buffer.
import { getQuickJS } from "quickjs-emscripten";

const quickjs = await getQuickJS();
const deadline = 60_000; // ms

const around = (code) => `
const lines = [];
const print = (prefix) => (...parts) => { lines.push(prefix + parts.map(String).join(" ")); };
globalThis.console = { log: print(""), warn: print("[warn] "), error: print("[error] ") };
const pack = (arg) => (arg instanceof Uint8Array ? arg.buffer : JSON.stringify(arg));
const codemode = new Proxy({}, { get: (_, tool) => async (arg) => JSON.parse(await callTool(tool, pack(arg))) });
(${code})()`;

// argument copies what a program passed out of its memory.
function argument(context, handle) {
  if (context.typeof(handle) === "string") return JSON.parse(context.getString(handle));
  const view = context.getArrayBuffer(handle);
  const bytes = view.value.slice();
  view.dispose();
  return bytes;
}

export async function run(code, tools) {
  const end = Date.now() + deadline;
  const runtime = quickjs.newRuntime({ memoryLimitBytes: 64 << 20, maxStackSizeBytes: 512 << 10 });
  runtime.setInterruptHandler(() => Date.now() > end);
  const context = runtime.newContext();
  const proceed = () => runtime.executePendingJobs().dispose?.();
  try {
    const callTool = context.newFunction("callTool", (tool, arg) => {
      const answer = context.newPromise();
      tools[context.getString(tool)](argument(context, arg)).then((value) => {
        context.newString(JSON.stringify(value)).consume((text) => answer.resolve(text));
        answer.dispose();
        proceed();
      });
      return answer.handle;
    });
    callTool.consume((handle) => context.setProp(context.global, "callTool", handle));
    const settled = context.unwrapResult(context.evalCode(around(code))).consume((p) => context.resolvePromise(p));
    proceed();
    return context.unwrapResult(await settled).consume(context.dump);
  } finally {
    context.dispose();
    runtime.dispose();
  }
}

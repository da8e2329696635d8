// The reference itself: the executor of @cloudflare/codemode in workerd, asked for one execution at a time.
import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
import { canon, canonLogs } from "./canon.mjs";
import { DynamicWorkerExecutor } from "./codemode.js";
import { makeProviders } from "./providers.mjs";

class Binding extends RpcTarget {
  #handle;

  constructor(handle) {
    super();
    this.#handle = handle;
  }

  callTool(method, args) {
    return this.#handle(method, args);
  }
}

/** Answers the requests of programs as the corpus has it. */
export class EchoOutbound extends WorkerEntrypoint {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/status/404") return new Response("nope", { status: 404 });
    if (pathname === "/throw") throw new Error("outbound refused");
    return Response.json({ method: request.method, url: request.url, header: request.headers.get("x-probe"), body: await request.text() });
  }
}

async function answer(env, ctx, row) {
  const calls = [];
  const { providers, connectors } = makeProviders(row.providers ?? "std", (namespace, name, args) => calls.push([`${namespace}.${name}`, canon(args)]));
  const options = { loader: env.LOADER, timeout: row.timeout ?? 5000 };
  if (row.modules) options.modules = row.modules;
  if (row.outbound === "echo") options.globalOutbound = ctx.exports.EchoOutbound({ props: {} });
  let got;
  try {
    const more = connectors && { connectors: connectors.map(({ name, handle }) => ({ name, binding: new Binding(handle) })) };
    const result = await new DynamicWorkerExecutor(options).execute(row.code, providers, more);
    got = {
      outcome: result.error ? "error" : "ok",
      keys: Object.keys(result).sort(),
      ...(result.error ? { error: canon(result.error) } : { result: canon(result.result) }),
      ...(result.logs === undefined ? {} : { logs: canonLogs(result.logs) }),
    };
  } catch (error) {
    got = { outcome: "threw", error: error instanceof Error ? { name: error.name, message: error.message } : { value: canon(error) } };
  }
  if (row.settle) await new Promise((resolve) => setTimeout(resolve, row.settle));
  return { ...got, calls: calls.length > 120 ? { $t: "calls", n: calls.length, first: calls.slice(0, 2), last: calls.slice(-2) } : calls };
}

/** Runs code so many times with a tool that takes bytes, for the comparison of costs. */
async function repeat(env, { code, times }) {
  const executor = new DynamicWorkerExecutor({ loader: env.LOADER, timeout: 60_000 });
  let sum = 0;
  for (let i = 0; i < times; i++) {
    const { result, error } = await executor.execute(code, [{ name: "codemode", fns: { take: async (bytes) => bytes.length } }]);
    if (error) throw new Error(error);
    sum += result;
  }
  return sum;
}

export default {
  async fetch(request, env, ctx) {
    if (request.method !== "POST") return new Response("here");
    const job = await request.json();
    return Response.json(job.times ? await repeat(env, job) : await answer(env, ctx, job));
  },
};

// A worker whose Durable Object has the durable runtime of the dialect, with our executor.
import { DurableObject } from "cloudflare:workers";
import { CodemodeConnector, CodemodeRuntime, createCodemodeRuntime } from "./codemode.js";
import { CodemodeExecutor } from "./src/codemode/index.js";

export { CodemodeRuntime };

class Database extends CodemodeConnector {
  calls = [];

  name() {
    return "db";
  }

  async tools() {
    const input = { type: "object" };
    const tool = (execute, more = {}) => ({ description: "", inputSchema: input, execute, ...more });
    return {
      read: tool(async ({ id }) => (this.calls.push("read"), { id, at: "start" })),
      write: tool(async (row) => (this.calls.push("write"), row), { requiresApproval: true }),
      fail: tool(async () => {
        throw new Error("the database said no");
      }),
    };
  }
}

export class Host extends DurableObject {
  #database;
  #executor;

  async fetch(request) {
    const { url, step, code, name, executionId, seq } = await request.json();
    this.#database ??= new Database(this.ctx, this.env);
    this.#executor ??= new CodemodeExecutor({ url, timeout: 10_000 });
    const runtime = createCodemodeRuntime({ ctx: this.ctx, connectors: [this.#database], executor: this.#executor });
    const steps = {
      execute: () => runtime.execute({ code }),
      approve: () => runtime.approve({ executionId }),
      reject: () => runtime.reject({ executionId, seq }),
      save: () => runtime.saveSnippet(name, { executionId, description: "" }),
      calls: () => this.#database.calls,
    };
    return Response.json((await steps[step]()) ?? null);
  }
}

export default {
  async fetch(request, env) {
    if (request.method !== "POST") return new Response("here");
    try {
      return await env.HOST.get(env.HOST.idFromName("one")).fetch(request);
    } catch (error) {
      return Response.json({ thrown: String(error.stack) });
    }
  },
};

// The host worker: runs the program in the body of a request with DynamicWorkerExecutor and answers with its value,
// with the length of a string instead of the string.
import { DynamicWorkerExecutor } from "@cloudflare/codemode";

const tools = { echo: async (value) => value, len: async (bytes) => bytes.byteLength };

export default {
  async fetch(request, env) {
    const executor = new DynamicWorkerExecutor({ loader: env.LOADER, timeout: 60_000 });
    const { result, error } = await executor.execute(await request.text(), [{ name: "codemode", fns: tools }]);
    if (error) return new Response(String(error), { status: 500 });
    return Response.json(typeof result === "string" ? result.length : result);
  },
};

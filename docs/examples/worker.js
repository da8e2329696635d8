// A Cloudflare Worker that runs the code in the body of a request, as @cloudflare/codemode runs it. EXECUTORD_URL is as
// wss://executor.example.com, EXECUTORD_TOKEN a secret: npm install executord && npx wrangler dev worker.js
import { CodemodeExecutor } from "executord/codemode";

export default {
  async fetch(request, env) {
    const executor = new CodemodeExecutor({ url: env.EXECUTORD_URL, token: env.EXECUTORD_TOKEN, timeout: 10_000 });
    const shop = { name: "shop", fns: { "price-of": async ({ item }) => item.length } };
    try {
      const { result, error, logs } = await executor.execute(await request.text(), [shop]);
      return Response.json({ result, error, logs }, { status: error === undefined ? 200 : 422 });
    } finally {
      await executor.close();
    }
  },
};

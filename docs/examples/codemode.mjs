// Gives a model of TanStack AI one tool that runs code: npm install executord @cloudflare/codemode @tanstack/ai zod
import { createCodeTool, tanstackTools } from "@cloudflare/codemode/tanstack-ai"; // or /ai, /mcp, /browser, or the root in a Worker
import { toolDefinition } from "@tanstack/ai";
import { CodemodeExecutor } from "executord/codemode";
import { z } from "zod";

const price = toolDefinition({ name: "price", description: "What an item costs", inputSchema: z.object({ item: z.string() }) })
  .server(async ({ item }) => item.length);
const executor = new CodemodeExecutor({ url: "unix:/tmp/executord.sock", timeout: 30_000 });
const tool = createCodeTool({ tools: [tanstackTools([price])], executor });

// chat({ tools: [tool], … }) has the model write the code.
const { result } = await tool.execute({ code: `async () => (await codemode.price({ item: "tea" })) * 2` });
console.log(result); // 6
await executor.close();

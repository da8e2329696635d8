// Runs a program with a tool on Node 20 or later, or Bun: npm install executord && node node.mjs
import { RemoteExecutor } from "executord";

const executor = new RemoteExecutor({ url: "unix:/tmp/executord.sock" });
const { value, logs } = await executor.execute({
  code: `console.log("adding"); await math.add(2, 3)`,
  providers: { math: { add: async (a, b) => a + b } },
});
console.log(value, logs[0].text); // 5 adding
await executor.close();

// Runs programs on Deno, one of which has to be ended: deno add npm:executord && deno run -A deno.ts
import { ExecutorError, RemoteExecutor } from "executord";

await using executor = new RemoteExecutor({ url: "unix:/tmp/executord.sock" });

const { value } = await executor.execute<Map<string, number>>({
  code: `async (text: string) => {
    const counts = new Map<string, number>();
    for (const word of text.split(" ")) counts.set(word, (counts.get(word) ?? 0) + 1);
    return counts;
  }`,
  language: "typescript",
  input: "to be or not to be",
});
console.log(value.get("be")); // 2

try {
  await executor.execute({ code: "for (;;);", limits: { cpuMs: 100 } });
} catch (error) {
  if (!(error instanceof ExecutorError)) throw error;
  console.log(error.type); // cpu_timeout
}

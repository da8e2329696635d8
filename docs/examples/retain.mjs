// Functions and iterators that a program leaves for its host.
import { RemoteExecutor } from "executord";

const executor = new RemoteExecutor({ url: "unix:/tmp/executord.sock" });
const { value: cursor, retained } = await executor.execute({
  code: `let seen = 0;
    async function* pages() { for (const page of ["a", "b", "c"]) { seen++; yield page; } }
    return { pages: pages(), seen: () => seen };`,
  retain: true,
});
for await (const page of cursor.pages) if (page === "b") break;
console.log(await cursor.seen()); // 2
retained.dispose();
await executor.close();

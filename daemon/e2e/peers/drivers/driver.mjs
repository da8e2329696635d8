// Measures a peer that lives in a node process: `node --no-node-snapshot driver.mjs ENGINE`.
// Standard input and output are JSON lines: each line in is a job, each line out its result, see job and result in
// measure.go. The first line out tells the versions.
import { createInterface } from "node:readline";

const tools = { echo: async (value) => value, len: async (bytes) => bytes.byteLength };
const { run } = await import(`./${process.argv[2]}.mjs`);
const tell = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function turn({ code, want, count, forMs, gapMs, lanes }) {
  const wallMs = [];
  const begin = performance.now();
  let begun = 0;
  const lane = async () => {
    while (begun < count && performance.now() - begin < forMs) {
      begun++;
      const asked = performance.now();
      const value = await run(code, tools);
      wallMs.push(performance.now() - asked);
      const got = typeof value === "string" ? value.length : value;
      if (got !== want) throw new Error(`got ${got}, not ${want}, from ${code}`);
      if (gapMs > 0) await sleep(gapMs);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { wallMs, tookMs: performance.now() - begin };
}

tell({ node: process.versions.node, v8: process.versions.v8 });
for await (const line of createInterface({ input: process.stdin })) {
  tell(await turn(JSON.parse(line)).catch((fault) => ({ fault: String(fault) })));
}

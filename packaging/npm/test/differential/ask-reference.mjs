// Asks the reference for the corpus again and prints every answer that is not the recorded one: npm run reference [-- ID…]
import { lines } from "../support/repository.mjs";
import { startReference } from "../support/reference.mjs";

const [, ...all] = lines("packaging/npm/test/differential/corpus.jsonl");
const wanted = process.argv.slice(2);
const rows = all.filter((row) => !row.expect.unstable && (wanted.length === 0 || wanted.includes(row.id)));

let reference = await startReference();
let changed = 0;

// A reference that hangs or dies takes the process along: the next row gets another.
async function ask(row) {
  let timer;
  const hang = new Promise((resolve) => (timer = setTimeout(resolve, row.wait ?? 15_000, { outcome: "hang" })));
  const got = await Promise.race([reference.ask(row).then(JSON.parse, () => ({ outcome: "crash" })), hang]);
  clearTimeout(timer);
  if (got.outcome === "hang" || got.outcome === "crash") {
    await reference.stop();
    reference = await startReference();
  }
  return got;
}

for (const row of rows) {
  const got = await ask(row);
  const { keys, ...want } = row.expect;
  const { keys: gotKeys, ...plain } = got;
  if (JSON.stringify(sorted(plain)) === JSON.stringify(sorted(want)) && (keys === undefined || JSON.stringify(keys) === JSON.stringify(gotKeys))) continue;
  changed++;
  console.log(`${row.id}\n  was ${JSON.stringify(want).slice(0, 300)}\n  is  ${JSON.stringify(plain).slice(0, 300)}`);
}
await reference.stop();
console.log(`${rows.length - changed} as recorded, ${changed} changed`);
process.exitCode = changed > 0 ? 1 : 0;

function sorted(object) {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

// The whole corpus of the codemode dialect through the adapter, a real service and real workers. Prints for each group how
// many rows are the same, better and otherwise; docs/codemode-deviations.md names each row that is not the same.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { CodemodeExecutor } from "../src/codemode/index.js";
import { RemoteExecutor } from "../src/index.js";
import { answer, faults } from "./differential/judge.mjs";
import { startDaemon } from "./support/daemon.mjs";
import { lines, read } from "./support/repository.mjs";

const [, ...rows] = lines("packaging/npm/test/differential/corpus.jsonl");
const listed = deviations(read("docs/codemode-deviations.md"));
/** Rows whose calls may or may not reach the host before the program ends: it does not wait for them. */
const racing = ["model-forgot-await"];
const atOnce = 2; // as many as the service has workers
const hangMs = 20_000;

/** The rows that the page names, with the word of the section that they are in. */
function deviations(page) {
  const found = new Map();
  for (const section of page.split("\n## ").slice(1)) {
    const word = section.startsWith("Better\n") ? "better" : "differs";
    for (const [, cells] of section.matchAll(/^\|(?! what \| the reference| ---)(.*)\|$/gm)) {
      for (const id of cells.split("|").at(-1).split(",")) found.set(id.trim(), word);
    }
  }
  return found;
}

let daemon;
let native;
const found = new Map(); // faults by row

before(async () => {
  daemon = await startDaemon();
  native = new RemoteExecutor({ url: daemon.url });
  const left = [...rows];
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (let row; (row = left.shift()) !== undefined; ) found.set(row.id, await judged(row));
  }));
});
after(async () => {
  await native?.close();
  await daemon?.stop();
});

async function judged(row) {
  let timer;
  const hang = new Promise((resolve) => (timer = setTimeout(resolve, hangMs, ["it hangs"])));
  const told = answer(row, (options) => new CodemodeExecutor({ executor: native, ...options })).then((got) => faults(row, got));
  const list = await Promise.race([told, hang]);
  clearTimeout(timer);
  return list.filter((fault) => !(racing.includes(row.id) && fault.startsWith("calls:")));
}

test("the page names rows of the corpus only, and none that must be the same", () => {
  for (const id of listed.keys()) assert.ok(rows.some((row) => row.id === id && row.level !== "must"), `${id} is no row that may differ`);
});

for (const row of rows) {
  test(`${row.level}: ${row.id}`, () => {
    const list = found.get(row.id);
    if (!listed.has(row.id)) assert.deepEqual(list, [], row.code);
    else assert.notDeepEqual(list, [], "it is the same: take it off the page");
    assert.ok(!list.includes("it hangs"));
  });
}

test("groups", (t) => {
  const groups = Map.groupBy ? Map.groupBy(rows, (row) => row.group) : rows.reduce((map, row) => map.set(row.group, [...(map.get(row.group) ?? []), row]), new Map());
  const count = (list, word) => list.filter((row) => (listed.get(row.id) ?? "same") === word).length;
  t.diagnostic(`${"group".padEnd(12)} same better differs`);
  for (const [group, list] of groups) {
    t.diagnostic(group.padEnd(12) + ["same", "better", "differs"].map((word) => String(count(list, word)).padStart(word.length + 1)).join("").slice(1));
  }
  t.diagnostic("all".padEnd(12) + ["same", "better", "differs"].map((word) => String(count(rows, word)).padStart(word.length + 1)).join("").slice(1));
});

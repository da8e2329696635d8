// normalizeCode and sanitizeToolName beside those of the package whose dialect it is.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test, { before } from "node:test";
import { normalizeCode, sanitizeToolName } from "../../src/codemode/index.js";
import { statementsOf } from "../../src/codemode/syntax.js";
import { load } from "../support/bundle.mjs";
import { lines, packageRoot } from "../support/repository.mjs";

let reference;
let acorn;
before(async () => {
  ({ reference, acorn } = await load('import * as acorn from "acorn"; import { normalizeCode, sanitizeToolName } from "@cloudflare/codemode"; export { acorn }; export const reference = { normalizeCode, sanitizeToolName };'));
});

const [, ...rows] = lines("packaging/npm/test/differential/corpus.jsonl");
const programs = rows.map((row) => row.code);

/** Our one difference: a semicolon right after an arrow function is left out. */
const withoutSemicolon = (code) => code.replace(/;(?=[^;]*$)/, "");

function sameAsReference(code) {
  const [got, want] = [normalizeCode(code), reference.normalizeCode(code)];
  if (got !== want && got !== withoutSemicolon(want)) assert.equal(got, want, code);
}

test("the programs of the corpus become the same text", () => programs.forEach(sameAsReference));

test("a fence without an end is seen to have none in time", () => {
  for (const code of ["```js \t\r\n\n 1 ```", "```\n\n```", "```ts\u2028\n\n1```\n\n", "```js\n\n```js\n\n1\n```\n```", "```jsx\n 1``` 2", "```js 1```"]) sameAsReference(code);
  const began = Date.now();
  assert.match(normalizeCode(`\`\`\`js${"\n".repeat(400_000)}x`), /^async \(\) => {/);
  assert.ok(Date.now() - began < 5000);
});

test("code of the repository is divided as acorn divides it", () => {
  const files = ["src", "test", "../../sandbox/runtime/src", "../../sandbox/runtime/analyze"].flatMap((folder) =>
    readdirSync(join(packageRoot, folder), { recursive: true }).filter((name) => /\.m?js$/.test(name)).map((name) => join(packageRoot, folder, name)));
  assert.ok(files.length > 150);
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    const want = acorn.parse(text, { ecmaVersion: "latest", sourceType: "module" }).body.map(({ start, end }) => [start, end]);
    assert.deepEqual(statementsOf(text).map(({ start, end }) => [start, end]), want, file);
  }
});

// What is broken by a small change is refused as acorn refuses it, but for errors that an engine finds later.
test("programs with small faults become the same text, or do not compile either way", () => {
  let seed = 1;
  const random = (n) => Math.floor(((seed = (seed * 48271) % 2147483647) / 2147483647) * n);
  const pieces = ["(", ")", "{", "}", "[", "]", ";", ",", "=>", "async ", "function f(){}", "return ", "`", "${", "/", "=", "'", "\n", "let x = 1;", "export default ", "await ", "class A {}", "var a;", "...", "?.", "yield ", "static ", "//c\n", "/*c*/", "in ", "of ", "a", "1", "get ", "import.meta", "for(;;)", "if(a)", "else ", "label: ", "++", "--", "new ", "*", "**", "var ", "const ", "using ", "?", ":", "&& ", "function* g(){}", "do ", "switch(a){case 1:}", "try{}finally{}", "throw ", ".x", "#x", "typeof ", "(a)", "{}", "[]", "`${a}`", "=> {}"];
  const short = programs.filter((code) => code.length < 400);
  const AsyncFunction = (async () => {}).constructor;
  const compiles = (text) => {
    try {
      return Boolean(new AsyncFunction(`"use strict"; (\n${text}\n)`));
    } catch {
      return false;
    }
  };
  let same = 0;
  for (let i = 0; i < 8000; i++) {
    const code = short[random(short.length)];
    const at = random(code.length + 1);
    const changed = random(2) === 0 ? code.slice(0, at) + pieces[random(pieces.length)] + code.slice(at) : code.slice(0, at) + code.slice(at + 1 + random(3));
    const [got, want] = [normalizeCode(changed), reference.normalizeCode(changed)];
    if (got === want || got === withoutSemicolon(want)) same++;
    else assert.ok(!compiles(got) && !compiles(want), `${changed}\nbecame\n${got}\nand not\n${want}`);
  }
  assert.ok(same > 7500);
});

test("normalizing twice is normalizing once, unless nothing of it parses", () => {
  for (const code of programs) {
    const once = normalizeCode(code);
    if (acorn.parse !== undefined && parses(once)) assert.equal(normalizeCode(once), once);
  }
});

function parses(text) {
  try {
    return Boolean(statementsOf(text));
  } catch {
    return false;
  }
}

test("names of tools are sanitized alike", () => {
  const names = ["", "a-b", "a.b", "a b", "a\u00a0b\tc\nd", "café", "a/b", "/", "3d", "-1", "delete", "async", "NaN", "a$b_", "日本", "-", "__proto__", "constructor", "ﬁ", "x".repeat(300)];
  for (const name of [...names, ...rows.flatMap((row) => row.providers?.names ?? [])]) assert.equal(sanitizeToolName(name), reference.sanitizeToolName(name), name);
});

// A model writes the code, and the host reads it: neither time nor stack may run away.
test("hostile code is read in time", () => {
  const deep = 3000;
  for (const code of [
    "(".repeat(deep) + ")".repeat(deep), "(a = ".repeat(25) + "1" + ")".repeat(25), "({[".repeat(28) + "1" + "]: 1})".repeat(28), "[".repeat(100_000),
    "`${".repeat(500) + "}`".repeat(500), "async (a = ".repeat(25) + "1" + ")".repeat(25), "a => ".repeat(5000) + "1", "{".repeat(100_000), "/*".repeat(50_000), "\n".repeat(1_000_000), "a;".repeat(200_000),
    '"' + "\\n".repeat(300_000) + '"', "/" + "[a]".repeat(100_000) + "/", "class A { [".repeat(25) + "x" + "] }".repeat(25), "x ? ".repeat(3000) + "1" + " : 2".repeat(3000),
  ]) {
    const began = performance.now();
    assert.equal(typeof normalizeCode(code), "string");
    assert.ok(performance.now() - began < 5000, code.slice(0, 40));
  }
});

// Writes normalize.jsonl, names.jsonl and types.jsonl: what the reference makes of programs, of names of tools and of their
// schemas. node ipc/codemode/testdata/rows.mjs; needs what the tests of packaging/npm need.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { load } from "../../../packaging/npm/test/support/bundle.mjs";
import { lines, root } from "../../../packaging/npm/test/support/repository.mjs";
import { normalizeCode } from "../../../packaging/npm/src/codemode/index.js";

const reference = await load('export { normalizeCode, sanitizeToolName, generateTypesFromJsonSchema } from "@cloudflare/codemode";');
const [, ...corpus] = lines("packaging/npm/test/differential/corpus.jsonl");
const write = (file, rows) => writeFileSync(join(root, "ipc/codemode/testdata", file), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));

const AsyncFunction = (async () => {}).constructor;
const compiles = (text) => {
  try {
    return Boolean(new AsyncFunction(`"use strict"; (\n${text}\n)`));
  } catch {
    return false;
  }
};
const withoutSemicolon = (code) => code.replace(/;(?=[^;]*$)/, "");

/** The row of a program. want is the reference's, but for a semicolon right after an arrow function; never runs: any text that does not compile is as good. */
function row(code) {
  const [want, ours] = [reference.normalizeCode(code), normalizeCode(code)];
  if (want !== ours && ours === withoutSemicolon(want).trim()) return { code, want: ours };
  return compiles(want) ? { code, want } : { code, want, broken: true };
}

// Small faults, and forms that the corpus does not have.
let seed = 7;
const random = (n) => Math.floor(((seed = (seed * 48271) % 2147483647) / 2147483647) * n);
const pieces = ["(", ")", "{", "}", "[", "]", ";", ",", "=>", "async ", "function f(){}", "return ", "`", "${", "/", "=", "'", "\n", "let x = 1;", "export default ", "await ", "class A {}", "var a;", "...", "?.", "yield ", "static ", "//c\n", "/*c*/", "in ", "of ", "a", "1", "get ", "import.meta", "for(;;)", "if(a)", "else ", "label: "];
const short = corpus.map(({ code }) => code).filter((code) => code.length < 200);
const faulty = Array.from({ length: 1200 }, () => {
  const code = short[random(short.length)];
  const at = random(code.length + 1);
  return random(2) === 0 ? code.slice(0, at) + pieces[random(pieces.length)] + code.slice(at) : code.slice(0, at) + code.slice(at + 1 + random(3));
});
const forms = [
  "let a = 8; a >>>= 1; a", "a ??= 1, b ||= 2", "x = y = 3", "({a, ...b} = c)", "[a, [b], {c: d = 1}] = e; a", "for await (const x of y) z(x); 1", "label: for (;;) break label; 2",
  "async function* g() { yield* h(); } g", "class A extends (B) { static #x = 1; static { this.y = #x in this; } get a() { return super.a; } async *[b]() {} } new A().a?.[0]?.(1)",
  "a ? b : c => d", "(a, b) => ({})", "async x => x", "async (x) => { await x }", "async\n(x)", "(async () => {})", "((() => 1))", "(x => x)(1)", "import('a').then(x => x)", "new.target", "import.meta.url",
  "export default async () => 1;", "export default (1, 2)", "export default class {}", "export default class A {}", "export default function () {}", "export default async function* f() {}", "export {}", "export * as x from 'y'; 1",
  "`a${`b${1}`}c`", "a`b`", "a?.`b`", "/[/]/.test(x)", "x = /a/g", "a / b / c", "a\n++b", "if (a) { } else b", "do x(); while (y) z", "try { } catch { } 1", "try { } finally { } 1", "switch (a) { case 1: b; default: c } d", "throw 1", "throw\n1",
  "\\u0061bc = 1", "v\\u0061r x", "var \\u{61} = 1; a", "0b11n", "1_000", "1__0", "08", "0x", ".5e3", "1.e1", "3in x", "'a\\\nb'", "'a\nb'", "\"\u2028\"", "a\u2028b", "\ufeff1", "\u00a0 1 \u3000", "#!hash\n1", "<!-- x\n1", "日本 = 1; 日本", "𠮷 = 1", "a.#b", "#a in b", "using x = y; 1", "await using x = y; 1", "let async; async()", "get = 1", "of", "let", "yield", "await", "await 1", "enum", "debugger; 1", "with (a) b", "delete a.b", "!function () {}()", "function f() {} function f() {}", "var f; function f() {}", "{ function f() {} } f()", "function f(a = 1, {b}, ...c) {}", "({ get a() { return 1 }, set a(v) {}, async b() {}, *c() {}, [d]: 1, 'e': 2, 3: 4, f })", "({ a = 1 })", "x\n/y/g", "a = b\n(c)", "\"use strict\"", "'a'; 'b'",
  "```js\n1\n```", "```\n1\n```", "``` \n1```", "```JS\n1\n```", "```ts\nx\n``` ", "```js\n```", "```js\n`a```b`\n```", "text\n```js\n1\n```",
];
write("normalize.jsonl", [...new Set([...corpus.map(({ code }) => code), ...forms, ...faulty])].filter((code) => code.length < 2000 && code.isWellFormed()).map(row));

const names = ["", "a-b", "a.b", "a b", "a\u00a0b\tc\nd", "café", "a/b", "/", "3d", "-1", "delete", "async", "of", "NaN", "a$b_", "日本", "-", "__proto__", "constructor", "toString", "ﬁ", "x".repeat(300), "await", "undefined", "\u2028x", "\u0085x", "\u180ex", "\ufeffx", "eval", "A", "get-user", "weird name!", "3d.render"];
write("names.jsonl", [...new Set([...names, ...corpus.flatMap((r) => r.providers?.names ?? [])])].map((name) => ({ name, want: reference.sanitizeToolName(name) })));

const input = (schema, more = {}) => ({ tool: { description: "does it", inputSchema: schema, ...more } });
const object = (properties, more = {}) => ({ type: "object", properties, ...more });
write("types.jsonl", [
  input({}), input(true), input(false), input({ type: "string" }), input({ type: ["string", "null"] }), input({ type: ["object", "array", "integer", "x"] }), input(object({})), input(object({}, { additionalProperties: false })),
  input(object({ a: { type: "string", description: "the a\nof it" }, "b-c": { type: "integer", format: "int32" }, d: { type: "boolean", description: "d", format: "*/x" } }, { required: ["a"] })),
  input(object({ a: true, b: false }, { required: ["b"], additionalProperties: { type: "number" } })), input(object({}, { additionalProperties: true })), input({ properties: { a: {} } }),
  input(object({ list: { type: "array", items: { type: "string" } }, any: { type: "array" }, tuple: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] }, old: { type: "array", items: [{ type: "null" }] } })),
  input({ anyOf: [{ type: "string" }, { type: "number" }] }), input({ oneOf: [{ const: "a" }, { const: 5 }, { const: null }, { const: { x: [1] } }] }), input({ allOf: [object({ a: {} }), object({ b: {} })] }),
  input({ enum: ["a\"\\\n\u2028\u0001", 1, null, true, { a: 1 }, [2]] }), input({ enum: [] }), input({ type: "string", nullable: true }), input({ enum: ["a"], nullable: true }),
  input({ $ref: "#/$defs/A", $defs: { A: object({ next: { $ref: "#/$defs/A" }, other: { $ref: "#/$defs/B~1c" } }), "B/c": { type: "string" } } }), input({ $ref: "#" }), input({ $ref: "https://example.com/x" }), input({ $ref: "#/nowhere" }),
  input(object({ deep: object({ deeper: object({ deepest: { type: "string", description: "down" } }) }) })), input(object({ "": { description: "empty" }, __proto__x: {}, "a\u2029b": {}, "tab\t\u0007": {} })),
  { "get-user": { description: " many\r\nlines */ here ", inputSchema: object({ id: { type: "string", description: "its id" } }), outputSchema: object({ name: { type: "string" } }) }, "3d.render": { inputSchema: {} }, delete: { inputSchema: { type: "object" } } }, {},
].map((tools) => ({ tools: Object.entries(tools).map(([name, tool]) => ({ name, description: tool.description ?? "", input: tool.inputSchema, output: tool.outputSchema })), want: reference.generateTypesFromJsonSchema(tools) })));
process.exit();

// One maker of a plan per entry form. A plan says by which edits the submitted text becomes an ES module:
//   { form, imports: [{specifier, at}], edits: [{at, text, from?} | {at, end, fill}], tail }
// Offsets are UTF-16 units of the submitted text. An edit with `text` inserts it (`from` is the place it stands for), one
// with `end` puts `fill` and spaces over what is there, line ends kept, so that lines keep their numbers and columns can
// be computed. `tail` is put after the end. Edits are in ascending order.
// Only text that was parsed as a whole is ever edited: nothing in it can close or comment out what is put around it.

import { lift, requests } from "./imports.js";
import { NotAFunction } from "./parser.js";
import { checkDepth, isErased } from "./typescript.js";

const scriptHead = "export default async () => {";
const scriptTail = "\n}";

// A hash-bang is a comment only at the very start of a text; where something is put in front, `//` takes its place.
const hashbang = (code) => (code.startsWith("#!") ? [{ at: 0, end: 2, fill: "//" }] : []);

const plan = (form, declarations, edits, tail = "") => ({ form, imports: requests(declarations), edits, tail });

const wrappers = new Set([
  "ParenthesizedExpression",
  "TSAsExpression",
  "TSSatisfiesExpression",
  "TSNonNullExpression",
  "TSTypeAssertion",
]);

function unwrap(expression) {
  while (wrappers.has(expression.type)) expression = expression.expression;
  return expression;
}

const isFunction = (node) =>
  node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression" || node.type === "FunctionDeclaration";

const isEmpty = (node) => node.type === "EmptyStatement" || isErased(node);

/** An ES module stays as it is. */
export function moduleForm(code, { ModuleReader }) {
  const { body } = read(new ModuleReader(code));
  return { ...plan("module", body, []), exports: body.some((node) => node.type.startsWith("Export")) };
}

/** One function becomes the default export. Imports before it can stay where they are. */
export function functionForm(code, { FunctionReader }) {
  const reader = new FunctionReader(code);
  const { expression } = read(reader);
  if (!isFunction(unwrap(expression))) throw new NotAFunction(expression.start);
  return exportFunction(expression, reader.imports);
}

function exportFunction(node, declarations) {
  const edits = [{ at: node.start, text: "export default (" }, { at: node.end, text: ")" }];
  return plan("function", declarations, edits);
}

/** Statements become the body of an async function; the expression that ends them becomes its value. */
export function scriptForm(code, { ScriptReader }) {
  const reader = new ScriptReader(code);
  return bodyOf(code, read(reader).body, reader.imports);
}

function bodyOf(code, body, declarations) {
  if (body.some(isNamespace)) return topLevel(body, declarations);
  const edits = [...opening(code, declarations), ...valueOf(body)];
  return plan("script", declarations, inOrder(edits), scriptTail);
}

const isNamespace = (node) => node.type === "TSModuleDeclaration" && !isErased(node);

// Namespaces of TypeScript stand in modules and in each other, never in functions: such a script stays what it is, and
// its value becomes the default export.
function topLevel(body, declarations) {
  const edits = valueOf(body).map((edit) => (edit.text === ")" ? edit : { ...edit, text: "export default (" }));
  return plan("module", declarations, edits);
}

const opening = (code, declarations) => [...lift(declarations), { at: 0, text: scriptHead }, ...hashbang(code)];

// At one place insertions come first, in the order given.
const inOrder = (edits) => edits.sort((a, b) => a.at - b.at || (a.text === undefined) - (b.text === undefined));

// Only an expression statement that is the last one counts, but for empty statements and imports, which do nothing
// there: the value of an `if` or a loop is no value.
// preserveParens makes the node cover the parentheses that the expression stands in.
function valueOf(body) {
  const last = body.findLast((node) => !isEmpty(node) && node.type !== "ImportDeclaration");
  if (last?.type !== "ExpressionStatement") return [];
  return [{ at: last.expression.start, text: "return (" }, { at: last.expression.end, text: ")" }];
}

/** Script, or function where the text is nothing but one. */
export function scriptOrFunctionForm(code, { ScriptReader }) {
  const reader = new ScriptReader(code);
  const { body } = read(reader);
  const rest = body.filter((node) => node.type !== "ImportDeclaration" && !isEmpty(node));
  const only = rest.length === 1 && importsComeFirst(body) ? rest[0] : undefined;
  if (only?.type === "FunctionDeclaration") return exportFunction(only, reader.imports);
  if (only?.type === "ExpressionStatement" && isFunction(unwrap(only.expression))) {
    return exportFunction(only.expression, reader.imports);
  }
  return bodyOf(code, body, reader.imports);
}

function importsComeFirst(body) {
  const first = body.findIndex((node) => node.type !== "ImportDeclaration" && !isEmpty(node));
  return body.every((node, i) => node.type !== "ImportDeclaration" || i < first);
}

// A reader's progress is of use when it fails.
function read(reader) {
  try {
    const root = reader.parse();
    if (reader.options.locations) checkDepth(root); // TypeScript
    return root;
  } catch (error) {
    error.reader = reader;
    throw error;
  }
}

// Probes: the text inside its form, for the engine to compile, so that the words about an error and its place are the
// engine's own. Here the text may close what is around it, so a probe must never run: with one name exported twice it
// never compiles, and the engine says so only after it has read everything. sandbox/entry knows the name.

const unrunnable = 'export*as"executor:probe"from"";'.repeat(2);
const around = {
  module: ["", ""],
  function: ["export default (", "\n)"],
  script: [scriptHead, scriptTail],
};

/** The { edits, tail } under which the engine is to look for the error that `error` reports, undefined where there is none. */
export function probe(code, form, error) {
  if (!(error instanceof SyntaxError)) return undefined;
  const imports = form === "script" ? (error.reader?.imports ?? []) : [];
  const at = form === "function" ? (error.reader?.entryStart ?? 0) : 0;
  const [head, tail] = around[form];
  const edits = [{ at: 0, text: unrunnable }, ...lift(imports), { at, text: head }, ...hashbang(code)];
  return { edits: inOrder(edits), tail };
}

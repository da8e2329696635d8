// From what a model wrote to the text of one function, by the rules of the codemode dialect.

import { statementsOf } from "./syntax.js";

const fenced = /^```(?:js|javascript|typescript|ts|tsx|jsx)?\s*\n([^]*?)```\s*$/;

/**
 * The text of a function without parameters that does what code does. It does not change its own output, unless nothing of it
 * can be read.
 */
export function normalizeCode(code) {
  const trimmed = String(code).trim();
  const source = (fenced.exec(trimmed)?.[1] ?? trimmed).trim();
  if (source === "") return "async () => {}";
  try {
    return functionOf(source, statementsOf(source));
  } catch {
    // No module: statements with a return at the top, another language, or nothing that runs.
    return bodyOf(source);
  }
}

/**
 * Where a normalized text is a function and no more, undefined; else the statements in it. They may be broken, or close what
 * is written around them, or be of a newer language than this package knows.
 */
export function unreadable(text) {
  try {
    const [only, ...others] = statementsOf(text);
    if (others.length === 0 && only.kind === "expression" && only.value.kind === "arrow") return undefined;
  } catch {
    // The same as any other text.
  }
  return text.slice(begin.length, -end.length);
}

const begin = "async () => {\n";
const end = "\n}";
const bodyOf = (text) => begin + text + end;

function functionOf(source, statements) {
  const last = statements.at(-1);
  if (statements.length === 1) {
    if (last.kind === "expression" && last.value.kind === "arrow") return without(source, last.semicolon);
    if (last.kind === "default") return defaultOf(source, last.value);
    if (last.kind === "function") return bodyOf(`${source}\nreturn ${last.name}();`);
  }
  if (last?.kind !== "expression") return bodyOf(source);
  const { value } = last;
  return bodyOf(`${source.slice(0, last.start)}return (${source.slice(value.start, value.end)})`);
}

function defaultOf(source, { kind, name, ...place }) {
  const text = source.slice(place.start, place.end);
  if (name === undefined && kind === "function") return bodyOf(`return (${text})();`);
  if (name === undefined && kind === "class") return bodyOf(`return (${text});`);
  return normalizeCode(text);
}

// without leaves out the semicolon after an arrow function, where it would end the function too early.
const without = (text, at) => (at < 0 ? text : (text.slice(0, at) + text.slice(at + 1)).trim());

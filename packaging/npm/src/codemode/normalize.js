// From what a model wrote to the text of one function, by the rules of the codemode dialect.

import { statementsOf } from "./syntax.js";

// One line break is looked for: blanks after it do not matter, and to try each takes long where the end is missing.
const fenced = /^```(?:[jt]sx?|(?:java|type)script)?[^\S\n]*\n([^]*?)```\s*$/;

/**
 * The text of a function without parameters that does what code does. It does not change its own output, unless nothing of it
 * can be read.
 */
export const normalizeCode = (code) => readCode(code)[0];

/**
 * The normalized text of code and, where that is not certain to be a function and no more, the statements in it: they may be
 * broken, or close what is written around them, or be of a newer language than this package knows.
 */
export function readCode(code) {
  const trimmed = String(code).trim();
  const source = (fenced.exec(trimmed)?.[1] ?? trimmed).trim();
  if (source === "") return ["async () => {}"];
  let statements;
  try {
    statements = statementsOf(source);
  } catch {
    return bodyOf(source, source);
  }
  const { start, end, value, exported, name } = statements?.at(-1) ?? {};
  if (statements?.length === 1) {
    // A semicolon after an arrow function would end the function too early.
    if (value?.kind === "arrow") return [(source.slice(0, source[end - 1] === ";" ? end - 1 : end) + source.slice(end)).trim()];
    if (exported) return defaultOf(source.slice(exported.start, exported.end), exported.kind);
    if (name) return bodyOf(`${source}\nreturn ${name}();`);
  }
  return bodyOf(value ? `${source.slice(0, start)}return (${source.slice(value.start, value.end)})` : source);
}

function defaultOf(text, kind) {
  if (kind === "function") return bodyOf(`return (${text})();`);
  return kind === "class" ? bodyOf(`return (${text});`) : readCode(text);
}

const bodyOf = (text, uncertain) => [`async () => {\n${text}\n}`, uncertain];

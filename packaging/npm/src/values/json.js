// JSON text to values, strictly: JSON.parse takes an object that has a key twice, and the protocol does not.

import { isArray } from "./tags.js";

export const { stringify } = JSON;

const long = 1 << 14; // letters of base64 that are not worth copying
const opening = '{"@bytes":"';

/** Parses text. Throws a SyntaxError. */
export function parse(text) {
  const [rest, bodies] = withoutBytes(text);
  const value = JSON.parse(rest);
  // The colons outside of strings are as many as the members that were read, or one was lost.
  if (colons(rest) !== members(value, bodies)) throw new SyntaxError("an object has a key twice");
  return value;
}

/**
 * Takes long base64 out of text, which costs JSON.parse a copy into fresh memory, and gives what was taken by the string that
 * stands for it. Such a string begins with NUL, so where another one may have a NUL nothing is taken.
 */
function withoutBytes(text) {
  const bodies = new Map();
  let rest = "";
  let from = 0;
  if (text.includes("\\u0000")) return [text, bodies];
  for (let at = text.indexOf(opening); at >= 0; at = text.indexOf(opening, at)) {
    const end = text.indexOf('"', (at += opening.length));
    if (end - at < long) continue;
    const body = text.slice(at, end);
    if (/[^\w+/=]/.test(body)) continue; // JSON has its say about it
    rest += `${text.slice(from, at)}\\u0000${bodies.size}`;
    bodies.set(`\0${bodies.size}`, body);
    from = end;
  }
  return [rest + text.slice(from), bodies];
}

// colons jumps from quote to quote, so long strings cost nothing.
function colons(text) {
  let found = 0;
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at)) {
    let from; // where the backslashes before the quote begin
    do for (from = at = text.indexOf('"', at + 1); text[from - 1] === "\\";) from--;
    while ((at - from) % 2);
    do at++;
    while (" \n\r\t".includes(text[at]));
    if (text[at] === ":") found++;
  }
  return found;
}

// members counts those of objects, and puts bodies back.
function members(value, bodies) {
  let found = 0;
  const left = [[value]];
  for (const next of left) {
    const items = isArray(next) ? next : Object.values(next);
    if (items !== next) found += items.length;
    if (bodies.has(next["@bytes"])) next["@bytes"] = bodies.get(next["@bytes"]);
    for (const item of items) if (item instanceof Object) left.push(item);
  }
  return found;
}

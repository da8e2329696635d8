// JSON text to values, strictly: JSON.parse takes an object that has a key twice, and the protocol does not.

import { isArray } from "./tags.js";

export const { stringify } = JSON;

/** Parses text. Throws a SyntaxError. */
export function parse(text) {
  const value = JSON.parse(text);
  // The colons outside of strings are as many as the members that were read, or one was lost.
  if (colons(text) !== members(value)) throw new SyntaxError("an object has a key twice");
  return value;
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

function members(value) {
  let found = 0;
  const left = [[value]];
  for (const next of left) {
    const items = isArray(next) ? next : Object.values(next);
    if (items !== next) found += items.length;
    for (const item of items) if (item instanceof Object) left.push(item);
  }
  return found;
}

// JSON text to values, strictly: JSON.parse takes an object that has a key twice, and the protocol does not.

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
  for (let open = text.indexOf('"'); open >= 0; ) {
    let end = text.indexOf('"', open + 1);
    while (escaped(text, end)) end = text.indexOf('"', end + 1);
    let next = end + 1;
    while (isSpace(text.charCodeAt(next))) next++;
    if (text.charCodeAt(next) === 0x3a) found++;
    open = text.indexOf('"', next);
  }
  return found;
}

function escaped(text, quote) {
  let from = quote;
  while (text.charCodeAt(from - 1) === 0x5c) from--;
  return (quote - from) % 2 === 1;
}

const isSpace = (unit) => unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;

function members(value) {
  let found = 0;
  const left = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (next === null || typeof next !== "object") continue;
    const items = Array.isArray(next) ? next : Object.values(next);
    if (items !== next) found += items.length;
    for (const item of items) if (typeof item === "object") left.push(item);
  }
  return found;
}

// Strings and property keys as source text, in the manner of the consoles of Node and Deno.

import {
  numberToString,
  stringCharCodeAt,
  stringIncludes,
  stringPadStart,
  stringSlice,
  symbolToString,
} from "../../primordials.js";

const named = { __proto__: null, 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 92: "\\\\" };

const hex = (code, digits) => stringPadStart(numberToString(code, 16), digits, "0");

const isHighSurrogate = (code) => code >= 0xd800 && code <= 0xdbff;
const isLowSurrogate = (code) => code >= 0xdc00 && code <= 0xdfff;

/** Quotes text with the quote that needs least escaping; controls and lone surrogates are escaped. */
export function quote(text) {
  const mark = pickQuote(text);
  const markCode = stringCharCodeAt(mark, 0);
  let out = mark;
  let plainFrom = 0;
  for (let i = 0; i < text.length; i++) {
    const code = stringCharCodeAt(text, i);
    if (isHighSurrogate(code) && isLowSurrogate(stringCharCodeAt(text, i + 1))) {
      i++;
      continue;
    }
    const escaped = escapeOf(code, markCode);
    if (escaped === undefined) continue;
    out += stringSlice(text, plainFrom, i) + escaped;
    plainFrom = i + 1;
  }
  return out + stringSlice(text, plainFrom) + mark;
}

function pickQuote(text) {
  if (!stringIncludes(text, "'")) return "'";
  if (!stringIncludes(text, '"')) return '"';
  return stringIncludes(text, "`") || stringIncludes(text, "${") ? "'" : "`";
}

// What must not stand as it is: controls, the quote, the backslash, half a pair.
function escapeOf(code, markCode) {
  if (named[code] !== undefined) return named[code];
  if (code === markCode) return `\\${code === 39 ? "'" : code === 34 ? '"' : "`"}`;
  if (code < 32 || (code >= 127 && code <= 159)) return `\\x${hex(code, 2)}`;
  if (code >= 0xd800 && code <= 0xdfff) return `\\u${hex(code, 4)}`;
  return undefined;
}

const isNameStart = (code) => (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 36 || code === 95;

/** Writes a property key: bare when it is a plain ASCII name, else quoted; symbols in brackets. */
export function keyText(key) {
  if (typeof key === "symbol") return `[${symbolToString(key)}]`;
  let plain = key.length > 0 && isNameStart(stringCharCodeAt(key, 0));
  for (let i = 1; plain && i < key.length; i++) {
    const code = stringCharCodeAt(key, i);
    plain = isNameStart(code) || (code >= 48 && code <= 57);
  }
  return plain ? key : quote(key);
}

// Results that a model can read: what is too large is cut where it is largest, and stays JSON of its shape.

import { stringify } from "../values/json.js";
import { isArray } from "../values/tags.js";
import { keysOf, members, put } from "../values/walk.js";

const usualChars = 24_000;
const mark = "--- TRUNCATED ---";
/** A container is worth so many characters for each item, when it comes to which is cut first. */
const charsPerItem = 16;

/**
 * The value itself where its JSON text has at most maxChars characters, else JSON data that fits: the longest strings, arrays and
 * objects are cut first, and each says so where it was cut. What has no JSON text is given back as it is.
 */
export function limitResult(value, maxChars = usualChars) {
  let text;
  try {
    text = stringify(value);
  } catch {} // a cycle, a BigInt
  if (text === undefined || text.length <= maxChars) return value;
  for (const whole of [JSON.parse(text), text]) {
    for (let most = maxChars; most >= 1; most /= 2) {
      const shorter = cut(whole, Math.floor(most));
      if (stringify(shorter).length <= maxChars) return shorter;
    }
  }
  return ""; // no room for a mark
}

// cut takes the ends off everything that is longer than most characters, or has more items than they are worth.
function cut(data, most) {
  if (typeof data === "string") return data.length <= most ? data : `${data.slice(0, most)} ${mark} ${data.length - most} more characters`;
  if (data === null || typeof data !== "object") return data;
  const isList = isArray(data);
  const keys = keysOf(data);
  const left = keys.splice(Math.max(1, Math.floor(most / charsPerItem)));
  const kept = members(isList ? [] : {}, data, (item) => cut(item, most), keys);
  if (left.length > 0) put(kept, isList ? keys.length : mark, isList ? `${mark} ${left.length} more items` : cut(left.join(", "), most));
  return kept;
}

// Making what a part has when it is first asked for.

import { defineProperty } from "./primordials.js";

/** Returns a function that gives what make returns, which is called once. */
export function once(make) {
  let made;
  return () => made ?? (made = make());
}

/** Makes read() the value of an own property of what a part exports. */
export const exportLater = (exports, name, read) => defineProperty(exports, name, { __proto__: null, get: read, enumerable: true });

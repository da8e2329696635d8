// How the library puts names on the global object, with the attributes that Web IDL asks for.

import { define, defineProperty, getOwnPropertyDescriptor, global } from "./primordials.js";

/** Makes every method of the literal an operation of the global: enumerable, writable, configurable. */
export function defineOperations(methods) {
  for (const name in methods) define(global, name, methods[name]);
}

/** Makes a namespace object, as `console`, a property of the global: not enumerable. */
export function defineNamespace(name, object) {
  define(global, name, object, false);
}

/** Defines `self` as WorkerGlobalScope does (HTML, 10.2.1.1): a readonly attribute. */
export function defineSelf() {
  const { get } = getOwnPropertyDescriptor({ get self() { return global; } }, "self");
  defineProperty(global, "self", { __proto__: null, get, set: undefined, enumerable: true, configurable: true });
}

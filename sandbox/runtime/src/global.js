// How the library puts names on the global object, with the attributes that Web IDL asks for.

import { define, defineProperty, getOwnPropertyDescriptor, global, SafeTypeError } from "./primordials.js";

/** Throws where a member of the global is used on another object: undefined and null stand for it (Web IDL, 3.7.6). */
export function checkGlobal(self) {
  if (self !== undefined && self !== null && self !== global) throw new SafeTypeError("Illegal invocation");
}

/** Makes every method of the literal an operation of the global: enumerable, writable, configurable. */
export function defineOperations(methods) {
  for (const name in methods) define(global, name, methods[name]);
}

/** Makes a namespace object, as `console`, a property of the global: not enumerable. */
export function defineNamespace(name, object) {
  define(global, name, object, false);
}

/**
 * Defines an attribute of the global. Without put, what is assigned to it takes its place ([Replaceable]); with null it is
 * read-only.
 */
export function defineAttribute(name, read, put = (value) => define(global, name, value)) {
  const { get, set } = getOwnPropertyDescriptor({
    get [name]() {
      checkGlobal(this);
      return read();
    },
    set [name](value) {
      checkGlobal(this);
      put(value);
    },
  }, name);
  defineProperty(global, name, { __proto__: null, get, set: put === null ? undefined : set, enumerable: true, configurable: true });
}

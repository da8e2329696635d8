// The value of a program (docs: entry forms). The only place that calls guest code as an entry.

import { apply, SafeTypeError } from "./primordials.js";
import { isClass } from "./reflect.js";

/**
 * Returns a promise of the program's value.
 * mode "module": the default export; a function is called with input, a class is a value, no default export gives undefined.
 * mode "call": the default export is a function made by the entry form and is called with input.
 */
export async function settle(namespace, mode, input) {
  // A module without a default export has no such key and answers undefined.
  const entry = namespace.default;
  const callable = typeof entry === "function" && !isClass(entry);
  if (mode === "call" && !callable) throw new SafeTypeError("the entry is not a function");
  // Awaiting reaches the engine's own promise machinery only, so that a guest that replaces Promise.prototype.then
  // cannot make its own end disappear.
  const value = await (callable ? apply(entry, undefined, [input]) : entry);
  return value;
}

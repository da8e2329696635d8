// Waking the parts of the library that are not in the snapshot.

import { hasOwn, SafeTypeError } from "./primordials.js";
import { parts } from "./parts/index.js";

/**
 * Returns need(part) → what the part exports, wake(name) → the value of a lazy global, and loaded(part) → what the part
 * exports if it is there already, else undefined. The first two load the part, once per execution; core is what its
 * function gets: the intrinsics, the host's functions, Web IDL and need.
 */
export function makeWake(native, core) {
  const owners = { __proto__: null };
  for (const part in parts) {
    for (const name of parts[part].interfaces ?? []) owners[name] = part;
    for (const name of parts[part].operations ?? []) owners[name] = part;
    for (const name of parts[part].attributes ?? []) owners[name] = part;
  }
  const loaded = { __proto__: null };

  function need(part) {
    return loaded[part] ?? (loaded[part] = load(part));
  }
  // A part that stands apart gets no core: nothing of the program's realm may reach it but strings and buffers.
  function load(part) {
    const apart = part in parts && hasOwn(parts[part], "apart");
    const make = native.load(part, apart);
    return apart ? make() : make(core);
  }
  function wake(name) {
    const exports = need(owners[name]);
    if (!hasOwn(exports, name)) throw new SafeTypeError(`the library lacks ${name}`);
    return exports[name];
  }
  return { __proto__: null, need, wake, loaded: (part) => loaded[part] };
}

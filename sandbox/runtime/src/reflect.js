// Looking at objects without running code of the guest: only data properties are read, proxies are never asked.

import {
  getOwnPropertyDescriptor,
  getPrototypeOf,
  hasOwn,
  isArrayIndexLimit,
  list,
  ownKeys,
  push,
  SafeTypeError,
  toStringTag,
} from "./primordials.js";

const chainLimit = 64; // prototypes looked at

/** The value of an own data property, undefined when there is none or it is an accessor. */
export function ownData(object, key) {
  const found = getOwnPropertyDescriptor(object, key);
  return found !== undefined && hasOwn(found, "value") ? found.value : undefined;
}

/** The value of the nearest property of that name when it is data, looking up the prototypes; undefined past a proxy. */
export function inheritedData(native, object, key) {
  for (let i = 0; i < chainLimit && object !== null; i++) {
    if (native.classOf(object) === "Proxy") return undefined;
    const found = getOwnPropertyDescriptor(object, key);
    if (found !== undefined) return hasOwn(found, "value") ? found.value : undefined;
    object = getPrototypeOf(object);
  }
  return undefined;
}

/** The name of a function when it is a string, else "". */
export function functionName(fn) {
  const name = ownData(fn, "name");
  return typeof name === "string" ? name : "";
}

/** True for what can only be constructed: the `prototype` of a class is not writable, that of a function is. */
export function isClass(fn) {
  const found = getOwnPropertyDescriptor(fn, "prototype");
  return found !== undefined && !found.writable;
}

/** The name of the class that made object: null when it has no prototype, "" when unknown. */
export function className(native, object) {
  const prototype = getPrototypeOf(object);
  if (prototype === null) return null;
  const constructor = inheritedData(native, prototype, "constructor");
  if (typeof constructor === "function" && native.classOf(constructor) !== "Proxy") {
    const name = functionName(constructor);
    if (name !== "") return name;
  }
  return native.constructorName(object);
}

/** The text that Symbol.toStringTag gives object, "" when it has none that can be read safely. */
export function tagOf(native, object) {
  const tag = inheritedData(native, object, toStringTag);
  return typeof tag === "string" ? tag : "";
}

/** Enumerable own keys in order, strings before symbols; without array indexes when named is true. */
export function shownKeys(object, named) {
  const keys = ownKeys(object);
  const shown = list();
  for (let i = 0; i < keys.length; i++) {
    if (named && isIndex(keys[i])) continue;
    if (isEnumerable(object, keys[i])) push(shown, keys[i]);
  }
  return shown;
}

function isEnumerable(object, key) {
  try {
    return getOwnPropertyDescriptor(object, key).enumerable;
  } catch {
    return true; // a module's binding before its initialisation
  }
}

const isIndex = (key) => typeof key === "string" && key === `${key >>> 0}` && key >>> 0 !== isArrayIndexLimit;

// `stack` is an own accessor in newer engines: the engine's getter is told from a getter of the guest by identity.
const engineStackGetter = getOwnPropertyDescriptor(new SafeTypeError(""), "stack")?.get;

/** The stack text of an error, undefined when the guest replaced it by something else than a string. */
export function stackOf(error) {
  const found = getOwnPropertyDescriptor(error, "stack");
  if (found === undefined) return undefined;
  if (hasOwn(found, "value")) return typeof found.value === "string" ? found.value : undefined;
  if (found.get === undefined || found.get !== engineStackGetter) return undefined;
  const { stack } = error;
  return typeof stack === "string" ? stack : undefined;
}

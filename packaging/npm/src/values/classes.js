// What the two halves of the codec share.

/** Bounds of one value, those of every implementation of the protocol. */
export const maxDepth = 2000;
export const maxParts = 1 << 20;
export const maxArrayLength = 2 ** 32 - 1;

/** A value that cannot be encoded or decoded. `path` is a JSON Pointer (RFC 6901) into the encoded text. */
export class ValueError extends TypeError {
  constructor(path, reason) {
    super(`cannot code value${path && " at " + path}: ${reason}`);
    this.path = path;
  }

  get name() {
    return "ValueError";
  }
}

/** Stands for a function that the service keeps. */
export class Handle {
  constructor(id, kind = "function") {
    this.id = id;
    this.kind = kind;
  }
}

/** What stands in the tag of a handle, by the object that stands for it here. */
export const handleTags = new WeakMap();

/** Classes whose bytes cross with their name. */
export const isBufferKind = (name) => /^(ArrayBuffer|DataView|((Int|Uint)(8|16|32)|Uint8Clamped|Float(16|32|64)|Big(Int|Uint)64)Array)$/.test(name);

/** Whether a BigInt has 65536 bits at most, without its sign. */
export function fits(bigint) {
  const size = bigint < 0n ? -bigint : bigint;
  return BigInt.asUintN(65536, size) === size;
}

export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** Members of an Error that are strings, and those that are not enumerable either. */
export const errorTexts = ["name", "message", "stack"];
export const errorValues = ["cause", "errors"];

export const pointerStep = (key) => "/" + String(key).replaceAll("~", "~0").replaceAll("/", "~1");

export function define(object, key, value, enumerable = false) {
  Object.defineProperty(object, key, { value, enumerable, writable: true, configurable: true });
}

/** Sets a data property, whatever the key: "__proto__" too. */
export function put(object, key, value) {
  if (key === "__proto__") define(object, key, value, true);
  else if (key !== "then" || typeof value !== "function") object[key] = value; // an object with it would be called when awaited
}

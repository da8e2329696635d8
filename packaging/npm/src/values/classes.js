// What the two halves of the codec share.

/** Bounds of one value, those of every implementation of the protocol. */
export const maxDepth = 2000;
export const maxParts = 1 << 20;
export const maxBigIntDigits = 19729; // of 65536 bits
export const maxArrayLength = 2 ** 32 - 1;

/** A value that cannot be encoded or decoded. `path` is a JSON Pointer (RFC 6901) into the encoded text. */
export class ValueError extends TypeError {
  constructor(path, reason) {
    super(path === "" ? `cannot code value: ${reason}` : `cannot code value at ${path}: ${reason}`);
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

export const bufferKinds = {
  ArrayBuffer: 1, DataView: 1, Int8Array: 1, Uint8Array: 1, Uint8ClampedArray: 1, Int16Array: 2, Uint16Array: 2,
  Float16Array: 2, Int32Array: 4, Uint32Array: 4, Float32Array: 4, Float64Array: 8, BigInt64Array: 8, BigUint64Array: 8,
};

export const pointerStep = (key) => "/" + String(key).replaceAll("~", "~0").replaceAll("/", "~1");

/** Defines a data property, whatever the key: "__proto__" too. */
export function put(object, key, value) {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else object[key] = value;
}

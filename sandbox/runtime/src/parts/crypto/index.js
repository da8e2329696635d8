// Crypto (Web Cryptography Level 2, https://w3c.github.io/webcrypto/#crypto-interface, 10) and the global's crypto.

import { makeBuffers } from "../../buffers.js";

export default function crypto(core) {
  const { Bytes, finish, illegalConstructor, isView, makeException, native, need, requireArguments, SafeTypeError, typedArrayTag } = core;
  const buffers = makeBuffers(core);
  const integers = {
    __proto__: null, Int8Array: 1, Uint8Array: 1, Uint8ClampedArray: 1, Int16Array: 1, Uint16Array: 1, Int32Array: 1, Uint32Array: 1, BigInt64Array: 1,
    BigUint64Array: 1,
  };
  const quota = 65536; // bytes at once (10.1.1)
  const hex = "0123456789abcdef";
  const token = {};

  class Crypto {
    #brand;
    constructor(key = undefined) {
      if (key !== token) throw illegalConstructor();
      native.brand(this); // a platform object, which no structured clone takes
    }
    get subtle() {
      this.#brand;
      return need("subtle").subtle;
    }
    getRandomValues(array) {
      this.#brand;
      requireArguments("getRandomValues' on 'Crypto", arguments.length, 1);
      if (!isView(array)) throw new SafeTypeError("The array is not a view of an ArrayBuffer.");
      const { QuotaExceededError } = need("exception");
      if (!(typedArrayTag(array) in integers)) throw makeException("The array is not one of integers.", "TypeMismatchError");
      const bytes = buffers.bytesOf(array, "The array");
      if (bytes.length > quota) {
        throw new QuotaExceededError(`${bytes.length} random bytes are more than ${quota}.`);
      }
      native.random(bytes);
      return array;
    }
    // A UUID of version 4 (RFC 9562).
    randomUUID() {
      this.#brand;
      const bytes = new Bytes(16);
      native.random(bytes);
      bytes[6] = (bytes[6] & 15) | 64;
      bytes[8] = (bytes[8] & 63) | 128;
      let text = "";
      for (let i = 0; i < 16; i++) {
        text += (i === 4 || i === 6 || i === 8 || i === 10 ? "-" : "") + hex[bytes[i] >> 4] + hex[bytes[i] & 15];
      }
      return text;
    }
  }
  finish(Crypto, { __proto__: null, name: "Crypto" });

  return { __proto__: null, Crypto, crypto: new Crypto(token) };
}

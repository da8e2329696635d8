// CryptoKey (Web Cryptography Level 2, https://w3c.github.io/webcrypto/#cryptokey-interface, 13). The key itself is in
// the host; the object has its handle.

export const allUsages = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];

export function makeKeys(core) {
  const { Bytes, finish, illegalConstructor, isObject, native, toEnum } = core;
  const token = {};
  let slotsOf;

  // Handles of keys that no program can reach any more are given back.
  const registry = new core.SafeFinalizationRegistry((handle) => {
    native.op("crypto.drop", handle);
  });

  class CryptoKey {
    #slots;
    #algorithm; // the objects that the program sees, made once
    #usages;
    static {
      slotsOf = (value) => (isObject(value) && #slots in value ? value.#slots : undefined);
    }
    constructor(key = undefined, slots = undefined) {
      if (key !== token) throw illegalConstructor();
      native.brand(this);
      this.#slots = slots;
    }
    get type() {
      return this.#slots.type;
    }
    get extractable() {
      return this.#slots.extractable;
    }
    get algorithm() {
      return (this.#algorithm ??= visible(this.#slots.algorithm));
    }
    get usages() {
      const { usages } = this.#slots;
      if (this.#usages === undefined) {
        this.#usages = [];
        for (let i = 0; i < usages.length; i++) core.define(this.#usages, i, usages[i]);
      }
      return this.#usages;
    }
  }
  finish(CryptoKey, { __proto__: null, name: "CryptoKey" });

  // A KeyAlgorithm dictionary as an object of the program's: name, then the members of each algorithm.
  function visible(algorithm) {
    const object = {};
    for (const name in algorithm) {
      const value = algorithm[name];
      core.define(object, name, name === "hash" ? visible(value) : isObject(value) ? new Bytes(value) : value);
    }
    return object;
  }

  /** Makes a CryptoKey of {handle, type, algorithm}; usages are those of `allowed` that are wanted. */
  function makeKey(handle, type, algorithm, extractable, usages) {
    const held = { __proto__: null, handle };
    core.registryRegister(registry, held, handle);
    return new CryptoKey(token, { __proto__: null, held, type, algorithm, extractable, usages });
  }

  /** Another object for the same key, as structured clones are. */
  const copyKey = (key) => new CryptoKey(token, slotsOf(key));

  const toUsage = (value) => toEnum(value, allUsages, "The key usage");
  const has = (usages, usage) => {
    for (let i = 0; i < usages.length; i++) if (usages[i] === usage) return true;
    return false;
  };

  /** The usages that are in both, in the standard's order and each once. */
  function common(usages, allowed) {
    const result = core.list();
    for (let i = 0; i < allUsages.length; i++) {
      if (has(usages, allUsages[i]) && has(allowed, allUsages[i])) core.push(result, allUsages[i]);
    }
    return result;
  }

  return { __proto__: null, CryptoKey, slotsOf, makeKey, copyKey, toUsage, has, common };
}

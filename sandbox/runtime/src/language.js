// What ECMAScript 2026 has and V8 13.6 lacks (2026-11): Iterator.concat, Math.sumPrecise, getOrInsert and
// getOrInsertComputed of Map and WeakMap, base64 and hex of Uint8Array. Here are only the functions, with their names and
// lengths; what they do is in the parts "language" and "bytes".

import { Bytes, define } from "./primordials.js";

/** Defines what the engine lacks. */
export function installLanguage(core) {
  const language = () => core.need("language");
  const collection = {
    getOrInsert(key, value) {
      return language().getOrInsert(this, key, value);
    },
    getOrInsertComputed(key, callback) {
      return language().getOrInsertComputed(this, key, callback);
    },
  };
  const weak = {
    getOrInsert(key, value) {
      return language().weakGetOrInsert(this, key, value);
    },
    getOrInsertComputed(key, callback) {
      return language().weakGetOrInsertComputed(this, key, callback);
    },
  };
  const bytes = () => core.need("bytes");
  const makers = {
    fromBase64: (string, options = undefined) => bytes().fromBase64(string, options),
    fromHex: (string) => bytes().fromHex(string),
  };
  const views = {
    setFromBase64(string, options = undefined) {
      return bytes().setFromBase64(this, string, options);
    },
    setFromHex(string) {
      return bytes().setFromHex(this, string);
    },
    toBase64(options = undefined) {
      return bytes().toBase64(this, options);
    },
    toHex() {
      return bytes().toHex(this);
    },
  };
  fill(Bytes, makers);
  fill(Bytes.prototype, views);
  fill(Iterator, { concat: (...items) => language().concat(items) });
  fill(Math, { sumPrecise: (items) => language().sumPrecise(items) });
  fill(Map.prototype, collection);
  fill(WeakMap.prototype, weak);
}

function fill(object, methods) {
  for (const name in methods) if (!(name in object)) define(object, name, methods[name], false);
}

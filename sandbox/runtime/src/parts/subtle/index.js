// SubtleCrypto (Web Cryptography Level 2, https://w3c.github.io/webcrypto/#subtlecrypto-interface, 14). Every operation
// is done when its method returns; what it gives comes through a promise.

import { makeBuffers } from "../../buffers.js";
import { makeAlgorithms } from "./algorithms.js";
import { algOf, makeJWK, memberNames } from "./jwk.js";
import { makeKeys } from "./key.js";

// What the private or secret key and the public key of an algorithm may be used for.
const pairUsages = {
  __proto__: null,
  "RSASSA-PKCS1-v1_5": [["sign"], ["verify"]],
  "RSA-PSS": [["sign"], ["verify"]],
  "ECDSA": [["sign"], ["verify"]],
  "Ed25519": [["sign"], ["verify"]],
  "Ed448": [["sign"], ["verify"]],
  "RSA-OAEP": [["decrypt", "unwrapKey"], ["encrypt", "wrapKey"]],
  "ECDH": [["deriveKey", "deriveBits"], []],
  "X25519": [["deriveKey", "deriveBits"], []],
  "X448": [["deriveKey", "deriveBits"], []],
};
const cipherUsages = ["encrypt", "decrypt", "wrapKey", "unwrapKey"];
const secretUsages = {
  __proto__: null,
  "AES-CTR": cipherUsages, "AES-CBC": cipherUsages, "AES-GCM": cipherUsages, "AES-KW": ["wrapKey", "unwrapKey"],
  "HMAC": ["sign", "verify"], "HKDF": ["deriveKey", "deriveBits"], "PBKDF2": ["deriveKey", "deriveBits"],
};
const blockBits = { __proto__: null, "SHA-1": 512, "SHA-256": 512, "SHA-384": 1024, "SHA-512": 1024 };
const formats = ["raw", "spki", "pkcs8", "jwk"];
const curves = ["P-256", "P-384", "P-521"];

export default function makeSubtle(core) {
  const {
    apply, Bytes, finish, illegalConstructor, isObject, isView, makeException, native, need, parseIntegerText, parseJSON, promiseReject, requireArguments, SafePromise, SafeTypeError,
    stringIndexOf, stringSlice, toBoolean, toEnum, toSequence, toUnsignedLong, typedArrayBuffer,
  } = core;
  const { bytesOf, isBuffer } = makeBuffers(core);
  const notSupported = (message) => makeException(message, "NotSupportedError");
  const dataError = (message) => makeException(message, "DataError");
  const syntaxError = (message) => makeException(message, "SyntaxError");
  const invalidAccess = (message) => makeException(message, "InvalidAccessError");
  const operationError = (message) => makeException(message, "OperationError");

  const { CryptoKey, slotsOf, makeKey, copyKey, toUsage, has, common } = makeKeys(core);
  const isKey = (value) => slotsOf(value) !== undefined;
  const { normalize, toIdentifier, supports } = makeAlgorithms(core, { bytesOf, isKey, notSupported });
  const { toJWK, check, stringify } = makeJWK(core, { dataError });

  // An operation of the host: its name and its arguments.
  const perform = native.op;
  function op(name) {
    arguments[0] = `crypto.${name}`;
    try {
      return apply(perform, undefined, arguments);
    } catch (error) {
      throw need("exception").exceptionOf(error);
    }
  }
  const handleOf = (slots) => slots.held.handle;
  const empty = new Bytes(0);

  // ---- conversions of arguments

  const toFormat = (value) => toEnum(value, formats, "The key format");
  const toUsages = (value) => toSequence(value, toUsage, "The key usages");
  function toKey(value) {
    const slots = slotsOf(value);
    if (slots === undefined) throw new SafeTypeError("The key is not a CryptoKey.");
    return slots;
  }
  function toSource(value, what = "The data") {
    bytesOf(value, what);
    return value;
  }
  const copyOf = (value) => new Bytes(bytesOf(value, "The data"));

  function checkUsages(usages, allowed) {
    for (let i = 0; i < usages.length; i++) {
      if (!has(allowed, usages[i])) throw syntaxError(`The key usage '${usages[i]}' is not one of the algorithm's.`);
    }
  }
  function checkKey(slots, algorithm, usage) {
    if (slots.algorithm.name !== algorithm.name) throw invalidAccess("The key is one of another algorithm.");
    if (!has(slots.usages, usage)) throw invalidAccess(`The key may not be used for ${usage}.`);
  }

  // ---- encrypt and decrypt (20 to 30)

  function crypt(operation, slots, algorithm, data) {
    const handle = handleOf(slots);
    const { name } = algorithm;
    switch (name) {
      case "RSA-OAEP": {
        const wanted = operation === "encrypt" ? "public" : "private";
        if (slots.type !== wanted) throw invalidAccess(`The key is not a ${wanted} key.`);
        return op(operation, handle, name, data, slots.algorithm.hash.name, algorithm.label ?? empty);
      }
      case "AES-CBC": return op(operation, handle, name, data, algorithm.iv);
      case "AES-CTR": return op(operation, handle, name, data, algorithm.counter, algorithm.length);
      default: {
        const { tagLength = 128 } = algorithm;
        if (!has([32, 64, 96, 104, 112, 120, 128], tagLength)) throw operationError("The tag length is not one of AES-GCM's.");
        return op(operation, handle, name, data, algorithm.iv, algorithm.additionalData ?? empty, tagLength);
      }
    }
  }

  // ---- sign and verify

  function checkSigner(slots, wanted) {
    if (slots.type !== "secret" && slots.type !== wanted) throw invalidAccess(`The key is not a ${wanted} key.`);
  }
  const hashFor = (slots, algorithm) => (algorithm.hash ?? slots.algorithm.hash)?.name;

  // ---- keys

  const isAES = (name) => stringSlice(name, 0, 4) === "AES-";
  const isRSA = (name) => stringSlice(name, 0, 3) === "RSA";
  const isEC = (name) => stringSlice(name, 0, 2) === "EC";
  const isEd = (name) => stringSlice(name, 0, 2) === "Ed";
  const kindOf = (name) => (isRSA(name) ? "rsa" : isEC(name) ? "ec" : name in secretUsages ? "secret" : name);
  const ktyOf = (name) => (isRSA(name) ? "RSA" : isEC(name) ? "EC" : name in secretUsages ? "oct" : "OKP");
  const checkCurve = (curve) => {
    if (!has(curves, curve)) throw notSupported("The curve is not supported.");
  };
  const isKeyLength = (bits) => bits === 128 || bits === 192 || bits === 256;

  // The KeyAlgorithm of a key that the host has; given is the normalized algorithm.
  function algorithmOf(given, handle) {
    const { name } = given;
    if (isRSA(name)) {
      const text = op("describe", handle);
      const at = stringIndexOf(text, " ");
      const publicExponent = new Bytes((text.length - at - 1) / 2);
      for (let i = 0; i < publicExponent.length; i++) publicExponent[i] = parseIntegerText(stringSlice(text, at + 1 + 2 * i, at + 3 + 2 * i), 16);
      return { __proto__: null, name, modulusLength: +stringSlice(text, 0, at), publicExponent, hash: { __proto__: null, name: given.hash.name } };
    }
    if (isEC(name)) return { __proto__: null, name, namedCurve: given.namedCurve };
    if (isAES(name)) return { __proto__: null, name, length: op("describe", handle) };
    if (name === "HMAC") return { __proto__: null, name, hash: { __proto__: null, name: given.hash.name }, length: given.length ?? op("describe", handle) };
    return { __proto__: null, name };
  }

  function generateSecret(algorithm, extractable, usages) {
    const { name } = algorithm;
    checkUsages(usages, secretUsages[name]);
    if (isAES(name) && !isKeyLength(algorithm.length)) throw operationError("The length of an AES key is 128, 192 or 256.");
    const bits = algorithm.length ?? blockBits[algorithm.hash.name];
    if (bits === 0) throw operationError("The length of the key is zero.");
    const handle = op("generate", "secret", bits);
    algorithm.length = bits;
    const kept = common(usages, secretUsages[name]);
    if (kept.length === 0) throw syntaxError("The key would have no usage.");
    return makeKey(handle, "secret", algorithmOf(algorithm, handle), extractable, kept);
  }

  // The only one with which the host makes keys: 65537.
  function isUsualExponent(bytes) {
    let value = 0;
    for (let i = 0; i < bytes.length; i++) value = value * 256 + bytes[i];
    return value === 65537;
  }

  function generatePair(algorithm, extractable, usages) {
    const { name } = algorithm;
    const allowed = pairUsages[name];
    for (let i = 0; i < usages.length; i++) {
      if (!has(allowed[0], usages[i]) && !has(allowed[1], usages[i])) throw syntaxError(`The key usage '${usages[i]}' is not one of the algorithm's.`);
    }
    if (isEC(name)) checkCurve(algorithm.namedCurve);
    if (isRSA(name) && !isUsualExponent(algorithm.publicExponent)) throw operationError("The public exponent must be 65537.");
    const kept = common(usages, allowed[0]);
    if (kept.length === 0) throw syntaxError("The private key would have no usage.");
    const first = isRSA(name) ? algorithm.modulusLength : algorithm.namedCurve;
    const handle = op("generate", kindOf(name), first, algorithm.publicExponent);
    const publicHandle = op("public", handle);
    const described = algorithmOf(algorithm, handle);
    return {
      privateKey: makeKey(handle, "private", described, extractable, kept),
      publicKey: makeKey(publicHandle, "public", described, true, common(usages, allowed[1])),
    };
  }

  // keyData is bytes, or a JsonWebKey when the format is "jwk".
  function importKey(format, keyData, algorithm, extractable, usages) {
    const { name } = algorithm;
    const key = name in secretUsages ? importSecret(format, keyData, algorithm, extractable, usages) : importPair(format, keyData, algorithm, extractable, usages);
    if (slotsOf(key).type !== "public" && usages.length === 0) throw syntaxError("The key would have no usage.");
    return key;
  }

  function importSecret(format, keyData, algorithm, extractable, usages) {
    const { name } = algorithm;
    const derives = name === "HKDF" || name === "PBKDF2";
    if (format !== "raw" && (format !== "jwk" || derives)) throw notSupported(`The format ${format} is not supported for ${name}.`);
    checkUsages(usages, secretUsages[name]);
    if (derives && extractable) throw syntaxError("Such a key cannot be extractable.");
    if (format === "jwk" && keyData.kty !== "oct") throw dataError("The JSON Web Key's 'kty' is not oct.");
    if (format === "jwk" && keyData.k === undefined) throw dataError("The JSON Web Key lacks 'k'.");
    const handle = format === "raw" ? op("import", "secret", "raw", keyData) : op("importJWK", "secret", undefined, keyData.k);
    const bits = op("describe", handle);
    if (isAES(name) && !isKeyLength(bits)) throw dataError("The length of an AES key is 128, 192 or 256 bits.");
    if (format === "jwk") {
      const alg = algOf(algorithm, bits);
      if (keyData.alg !== undefined && keyData.alg !== alg) throw dataError(`The JSON Web Key's 'alg' is not ${alg}.`);
      check(keyData, "oct", name === "HMAC" ? "sig" : "enc", extractable, usages);
    }
    if (name === "HMAC") {
      if (bits === 0) throw dataError("The key is empty.");
      const { length = bits } = algorithm;
      if (length > bits || length <= bits - 8) throw dataError("The length is not that of the key.");
      algorithm.length = length;
    }
    return makeKey(handle, "secret", algorithmOf(algorithm, handle), extractable, common(usages, secretUsages[name]));
  }

  function importPair(format, keyData, algorithm, extractable, usages) {
    const { name } = algorithm;
    const isPrivate = format === "pkcs8" || (format === "jwk" && keyData.d !== undefined);
    if (format === "raw" && isRSA(name)) throw notSupported(`The format raw is not supported for ${name}.`);
    if (isEC(name) && format !== "jwk") checkCurve(algorithm.namedCurve);
    const allowed = pairUsages[name][isPrivate ? 0 : 1];
    checkUsages(usages, allowed);
    const handle = format === "jwk"
      ? importPairJWK(keyData, algorithm, extractable, usages)
      : op("import", kindOf(name), format, keyData, algorithm.namedCurve);
    return makeKey(handle, isPrivate ? "private" : "public", algorithmOf(algorithm, handle), extractable, common(usages, allowed));
  }

  function importPairJWK(jwk, algorithm, extractable, usages) {
    const { name } = algorithm;
    const kty = ktyOf(name);
    check(jwk, kty, has(["RSA-OAEP", "ECDH", "X25519", "X448"], name) ? "enc" : "sig", extractable, usages);
    if (isEC(name)) checkCurve(algorithm.namedCurve);
    const curve = isEC(name) ? algorithm.namedCurve : kty === "OKP" ? name : undefined;
    if (curve !== undefined && jwk.crv !== curve) throw dataError(`The JSON Web Key's 'crv' is not ${curve}.`);
    const alg = algOf(algorithm);
    const matches = jwk.alg === undefined || alg === undefined || jwk.alg === alg || (isEd(name) && jwk.alg === "EdDSA");
    if (!matches) throw dataError(`The JSON Web Key's 'alg' is not ${alg}.`);
    if (jwk.oth !== undefined) throw notSupported("Keys of more than two primes are not supported.");
    const { names, from } = memberNames[kty];
    const last = jwk.d === undefined ? from : names.length;
    for (let i = 0; i < last; i++) {
      if (jwk[names[i]] === undefined) throw dataError(`The JSON Web Key lacks '${names[i]}'.`);
    }
    const given = (i) => (i < last ? jwk[names[i]] : undefined);
    switch (kty) {
      case "RSA": return op("importJWK", "rsa", undefined, given(0), given(1), given(2), given(3), given(4), given(5), given(6), given(7));
      case "EC": return op("importJWK", "ec", curve, given(0), given(1), given(2));
      default: return op("importJWK", name, undefined, given(0), given(1));
    }
  }

  // Bytes, or an object of the members of a JsonWebKey without a prototype.
  function exportKey(format, slots) {
    const { type } = slots;
    const { name } = slots.algorithm;
    if (format === "jwk") return exportJWK(slots);
    const wanted = format === "spki" ? "public" : format === "pkcs8" ? "private" : undefined;
    const isSecret = type === "secret";
    if (isSecret ? format !== "raw" : format === "raw" && isRSA(name)) throw notSupported(`The format ${format} is not supported for ${name}.`);
    if (!isSecret && type !== (wanted ?? "public")) throw invalidAccess(`The key is not a ${wanted ?? "public"} key.`);
    return op("export", handleOf(slots), format);
  }

  function exportJWK(slots) {
    const { algorithm } = slots;
    const { name } = algorithm;
    const kty = ktyOf(name);
    const jwk = { __proto__: null, key_ops: slots.usages, ext: slots.extractable, kty };
    const alg = algOf(algorithm, algorithm.length);
    if (alg !== undefined) jwk.alg = alg;
    if (kty === "EC" || kty === "OKP") jwk.crv = algorithm.namedCurve ?? name;
    const text = op("exportJWK", handleOf(slots));
    const { names } = memberNames[kty];
    for (let i = 0, start = 0; start <= text.length && i < names.length; i++) {
      let end = stringIndexOf(text, " ", start);
      if (end < 0) end = text.length;
      jwk[names[i]] = stringSlice(text, start, end);
      start = end + 1;
    }
    return jwk;
  }

  function visibleJWK(jwk) {
    const object = {};
    for (const name in jwk) {
      let value = jwk[name];
      if (name === "key_ops") {
        value = [];
        for (let i = 0; i < jwk.key_ops.length; i++) core.define(value, i, jwk.key_ops[i]);
      }
      core.define(object, name, value);
    }
    return object;
  }

  function checkExportable(slots) {
    if (!supports(slots.algorithm.name, "exportKey")) throw notSupported(`Keys of ${slots.algorithm.name} cannot be exported.`);
    if (!slots.extractable) throw invalidAccess("The key is not extractable.");
  }

  // ---- derivation

  // length is null for all there is. Returns bytes.
  function deriveBits(algorithm, slots, length) {
    const { name } = algorithm;
    if (algorithm.public !== undefined) return agree(algorithm, slots, length);
    if (length === null || length % 8 !== 0) throw operationError("The length must be a multiple of 8.");
    const handle = handleOf(slots);
    if (name === "HKDF") return op("hkdf", handle, algorithm.hash.name, algorithm.salt, algorithm.info, length / 8);
    return op("pbkdf2", handle, algorithm.hash.name, algorithm.salt, algorithm.iterations, length / 8);
  }

  function agree(algorithm, slots, length) {
    const other = slotsOf(algorithm.public);
    if (slots.type !== "private") throw invalidAccess("The key is not a private key.");
    if (other.type !== "public") throw invalidAccess("The other key is not a public key.");
    if (other.algorithm.name !== slots.algorithm.name || other.algorithm.namedCurve !== slots.algorithm.namedCurve) {
      throw invalidAccess("The keys are of different algorithms or curves.");
    }
    const secret = op("agree", handleOf(slots), handleOf(other));
    if (length === null) return secret;
    if (length > secret.length * 8) throw operationError("The length is more than the secret has.");
    const size = (length + 7) >> 3;
    const bytes = new Bytes(size);
    for (let i = 0; i < size; i++) bytes[i] = secret[i];
    if (length % 8 !== 0) bytes[size - 1] &= 0xff << (8 - (length % 8));
    return bytes;
  }

  // Get key length (18.5.9 and others).
  function lengthOf(algorithm) {
    const { name } = algorithm;
    if (isAES(name)) {
      if (!isKeyLength(algorithm.length)) throw operationError("The length of an AES key is 128, 192 or 256.");
      return algorithm.length;
    }
    if (name !== "HMAC") return null;
    if (algorithm.length === 0) throw new SafeTypeError("The length of the key is zero.");
    return algorithm.length ?? blockBits[algorithm.hash.name];
  }

  // ---- wrapping: with wrapKey and unwrapKey of an algorithm, or else with encrypt and decrypt (14.3.11)

  function normalizeEither(operation, fallback, identifier) {
    try {
      return normalize(operation, identifier);
    } catch {
      return normalize(fallback, identifier);
    }
  }

  // ---- the interface

  const buffer = (bytes) => typedArrayBuffer(bytes);
  function promised(steps) {
    try {
      const value = steps();
      return new SafePromise((resolve) => resolve(value));
    } catch (error) {
      return promiseReject(error);
    }
  }

  class SubtleCrypto {
    #brand;
    constructor(key = undefined) {
      if (key !== isKey) throw illegalConstructor();
      native.brand(this);
    }
    // Runs a method: a wrong receiver, too few arguments or anything thrown rejects the promise.
    static #run(self, operation, given, count, steps) {
      return promised(() => {
        self.#brand;
        requireArguments(`${operation}' on 'SubtleCrypto`, given, count);
        return steps();
      });
    }
    encrypt(algorithm, key, data) {
      return SubtleCrypto.#run(this, "encrypt", arguments.length, 3, () => cipher("encrypt", algorithm, key, data));
    }
    decrypt(algorithm, key, data) {
      return SubtleCrypto.#run(this, "decrypt", arguments.length, 3, () => cipher("decrypt", algorithm, key, data));
    }
    sign(algorithm, key, data) {
      return SubtleCrypto.#run(this, "sign", arguments.length, 3, () => {
        const identifier = toIdentifier(algorithm);
        const slots = toKey(key);
        toSource(data);
        const normalized = normalize("sign", identifier);
        const bytes = copyOf(data);
        checkKey(slots, normalized, "sign");
        checkSigner(slots, "private");
        return buffer(op("sign", handleOf(slots), normalized.name, hashFor(slots, normalized), bytes, normalized.saltLength ?? 0, normalized.context ?? empty));
      });
    }
    verify(algorithm, key, signature, data) {
      return SubtleCrypto.#run(this, "verify", arguments.length, 4, () => {
        const identifier = toIdentifier(algorithm);
        const slots = toKey(key);
        toSource(signature, "The signature");
        toSource(data);
        const normalized = normalize("verify", identifier);
        const given = copyOf(signature);
        const bytes = copyOf(data);
        checkKey(slots, normalized, "verify");
        checkSigner(slots, "public");
        return op(
          "verify", handleOf(slots), normalized.name, hashFor(slots, normalized), bytes, given, normalized.saltLength ?? 0, normalized.context ?? empty,
        ) === 1;
      });
    }
    digest(algorithm, data) {
      return SubtleCrypto.#run(this, "digest", arguments.length, 2, () => {
        const identifier = toIdentifier(algorithm);
        toSource(data);
        const { name } = normalize("digest", identifier);
        return buffer(op("digest", name, bytesOf(data, "The data")));
      });
    }
    generateKey(algorithm, extractable, keyUsages) {
      return SubtleCrypto.#run(this, "generateKey", arguments.length, 3, () => {
        const identifier = toIdentifier(algorithm);
        const usages = toUsages(keyUsages);
        const normalized = normalize("generateKey", identifier);
        return (normalized.name in secretUsages ? generateSecret : generatePair)(normalized, toBoolean(extractable), usages);
      });
    }
    deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
      return SubtleCrypto.#run(this, "deriveKey", arguments.length, 5, () => {
        const identifier = toIdentifier(algorithm);
        const slots = toKey(baseKey);
        const derivedIdentifier = toIdentifier(derivedKeyType);
        const usages = toUsages(keyUsages);
        const normalized = normalize("deriveBits", identifier);
        const imported = normalize("importKey", derivedIdentifier);
        const sized = normalize("getKeyLength", derivedIdentifier);
        checkKey(slots, normalized, "deriveKey");
        const bytes = deriveBits(normalized, slots, lengthOf(sized));
        return importKey("raw", bytes, imported, toBoolean(extractable), usages);
      });
    }
    deriveBits(algorithm, baseKey, length = undefined) {
      return SubtleCrypto.#run(this, "deriveBits", arguments.length, 2, () => {
        const identifier = toIdentifier(algorithm);
        const slots = toKey(baseKey);
        const bits = length === undefined || length === null ? null : toUnsignedLong(length);
        const normalized = normalize("deriveBits", identifier);
        checkKey(slots, normalized, "deriveBits");
        return buffer(deriveBits(normalized, slots, bits));
      });
    }
    importKey(format, keyData, algorithm, extractable, keyUsages) {
      return SubtleCrypto.#run(this, "importKey", arguments.length, 5, () => {
        const form = toFormat(format);
        const binary = isView(keyData) || (isObject(keyData) && isBuffer(keyData));
        const data = binary ? toSource(keyData, "The key data") : toJWK(keyData);
        const identifier = toIdentifier(algorithm);
        const usages = toUsages(keyUsages);
        const normalized = normalize("importKey", identifier);
        if (binary === (form === "jwk")) throw new SafeTypeError(`The key data is not that of the format ${form}.`);
        return importKey(form, binary ? copyOf(data) : data, normalized, toBoolean(extractable), usages);
      });
    }
    exportKey(format, key) {
      return SubtleCrypto.#run(this, "exportKey", arguments.length, 2, () => {
        const form = toFormat(format);
        const slots = toKey(key);
        checkExportable(slots);
        const exported = exportKey(form, slots);
        return form === "jwk" ? visibleJWK(exported) : buffer(exported);
      });
    }
    wrapKey(format, key, wrappingKey, wrapAlgorithm) {
      return SubtleCrypto.#run(this, "wrapKey", arguments.length, 4, () => {
        const form = toFormat(format);
        const slots = toKey(key);
        const wrapper = toKey(wrappingKey);
        const normalized = normalizeEither("wrapKey", "encrypt", toIdentifier(wrapAlgorithm));
        checkKey(wrapper, normalized, "wrapKey");
        checkExportable(slots);
        const exported = exportKey(form, slots);
        const bytes = form === "jwk" ? native.utf8Encode(stringify(exported)) : exported;
        return buffer(normalized.name === "AES-KW" ? op("wrap", handleOf(wrapper), bytes) : crypt("encrypt", wrapper, normalized, bytes));
      });
    }
    unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
      return SubtleCrypto.#run(this, "unwrapKey", arguments.length, 7, () => {
        const form = toFormat(format);
        toSource(wrappedKey, "The wrapped key");
        const unwrapper = toKey(unwrappingKey);
        const identifier = toIdentifier(unwrapAlgorithm);
        const keyIdentifier = toIdentifier(unwrappedKeyAlgorithm);
        const usages = toUsages(keyUsages);
        const normalized = normalizeEither("unwrapKey", "decrypt", identifier);
        const imported = normalize("importKey", keyIdentifier);
        const wrapped = copyOf(wrappedKey);
        checkKey(unwrapper, normalized, "unwrapKey");
        const bytes = normalized.name === "AES-KW" ? op("unwrap", handleOf(unwrapper), wrapped) : crypt("decrypt", unwrapper, normalized, wrapped);
        return importKey(form, form === "jwk" ? parseJWK(bytes) : bytes, imported, toBoolean(extractable), usages);
      });
    }
  }
  finish(SubtleCrypto, { __proto__: null, name: "SubtleCrypto" });

  function cipher(operation, algorithm, key, data) {
    const identifier = toIdentifier(algorithm);
    const slots = toKey(key);
    toSource(data);
    const normalized = normalize(operation, identifier);
    const bytes = copyOf(data);
    checkKey(slots, normalized, operation);
    return buffer(crypt(operation, slots, normalized, bytes));
  }

  // Parse a JWK (14.3.12).
  function parseJWK(bytes) {
    let value;
    try {
      value = parseJSON(native.utf8Decode(bytes, false));
    } catch {
      throw dataError("The unwrapped key is not JSON.");
    }
    const jwk = toJWK(value);
    if (jwk.kty === undefined) throw dataError("The unwrapped key lacks 'kty'.");
    return jwk;
  }

  return { __proto__: null, CryptoKey, SubtleCrypto, subtle: new SubtleCrypto(isKey), copyKey };
}

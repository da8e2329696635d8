// Algorithms by name, and how a program's description of one becomes the dictionary that its operation takes (Web
// Cryptography Level 2, https://w3c.github.io/webcrypto/#algorithm-normalization, 18.4; Ed448 and X448 are those of Secure
// Curves in the Web Cryptography API, https://wicg.github.io/webcrypto-secure-curves/).

export function makeAlgorithms(core, { bytesOf, isKey, notSupported }) {
  const {
    Bytes, isObject, isView, required, SafeTypeError, stringToLowerCase: lower, toDictionary, toDOMString, toEnforced, typedArrayTag,
  } = core;

  // ---- members, in the order in which Web IDL reads them

  const octet = (value, what) => toEnforced(value, 0, 255, what);
  const short = (value, what) => toEnforced(value, 0, 65535, what);
  const long = (value, what) => toEnforced(value, 0, 4294967295, what);
  const bytes = (value, what) => new Bytes(bytesOf(value, what));
  const hash = (value) => normalize("digest", toIdentifier(value));
  function integer(value, what) {
    if (!isView(value) || typedArrayTag(value) !== "Uint8Array") throw new SafeTypeError(`${what} is not a Uint8Array.`);
    return new Bytes(bytesOf(value, what));
  }
  function key(value, what) {
    if (!isKey(value)) throw new SafeTypeError(`${what} is not a CryptoKey.`);
    return value;
  }
  const none = [];
  const needsHash = [["hash", hash, required]];
  const needsCurve = [["namedCurve", toDOMString, required]];
  const needsLength = [["length", short, required]];
  const rsaGeneration = [["modulusLength", long, required], ["publicExponent", integer, required], ["hash", hash, required]];
  const hmac = [["hash", hash, required], ["length", long]];
  const cbc = [["iv", bytes, required]];
  const ctr = [["counter", bytes, required], ["length", octet, required]];
  const gcm = [["additionalData", bytes], ["iv", bytes, required], ["tagLength", octet]];
  const oaep = [["label", bytes]];
  const agreement = [["public", key, required]];

  // ---- which algorithm supports which operation, with what dictionary (18.2 and 20 to 34)

  const signing = (generate, imported, parameters) => ({
    __proto__: null, generateKey: generate, importKey: imported, exportKey: none, sign: parameters, verify: parameters,
  });
  const cipher = (parameters) => ({
    __proto__: null, generateKey: needsLength, importKey: none, exportKey: none, getKeyLength: needsLength, encrypt: parameters, decrypt: parameters,
  });
  const derivation = (parameters) => ({ __proto__: null, importKey: none, getKeyLength: none, deriveBits: parameters });
  const montgomery = { __proto__: null, generateKey: none, importKey: none, exportKey: none, deriveBits: agreement };
  const table = {
    __proto__: null,
    "RSASSA-PKCS1-v1_5": signing(rsaGeneration, needsHash, none),
    "RSA-PSS": signing(rsaGeneration, needsHash, [["saltLength", long, required]]),
    "RSA-OAEP": { __proto__: null, generateKey: rsaGeneration, importKey: needsHash, exportKey: none, encrypt: oaep, decrypt: oaep },
    "ECDSA": signing(needsCurve, needsCurve, needsHash),
    "ECDH": { __proto__: null, generateKey: needsCurve, importKey: needsCurve, exportKey: none, deriveBits: agreement },
    "Ed25519": signing(none, none, none),
    "Ed448": signing(none, none, [["context", bytes]]),
    "X25519": montgomery,
    "X448": montgomery,
    "AES-CTR": cipher(ctr),
    "AES-CBC": cipher(cbc),
    "AES-GCM": cipher(gcm),
    "AES-KW": {
      __proto__: null, generateKey: needsLength, importKey: none, exportKey: none, getKeyLength: needsLength, wrapKey: none, unwrapKey: none,
    },
    "HMAC": { ...signing(hmac, hmac, none), getKeyLength: hmac, __proto__: null },
    "SHA-1": { __proto__: null, digest: none },
    "SHA-256": { __proto__: null, digest: none },
    "SHA-384": { __proto__: null, digest: none },
    "SHA-512": { __proto__: null, digest: none },
    "HKDF": derivation([["hash", hash, required], ["info", bytes, required], ["salt", bytes, required]]),
    "PBKDF2": derivation([["hash", hash, required], ["iterations", long, required], ["salt", bytes, required]]),
  };
  const names = { __proto__: null };
  for (const name in table) names[lower(name)] = name;

  const supports = (name, operation) => table[name][operation] !== undefined;

  // AlgorithmIdentifier: (object or DOMString).
  const toIdentifier = (value) => (isObject(value) ? value : toDOMString(value));

  const nameMember = [["name", toDOMString, required]];

  // Only the letters of ASCII are folded; no name has others.
  function find(operation, given) {
    const name = names[lower(given)];
    const members = name !== undefined && lower(name).length === given.length ? table[name][operation] : undefined;
    if (members === undefined) throw notSupported(`The algorithm is not supported for ${operation}.`);
    return [name, members];
  }

  // Normalize an algorithm: {name, …members}.
  function normalize(operation, algorithm) {
    if (typeof algorithm === "string") algorithm = { __proto__: null, name: algorithm };
    const { name: given } = toDictionary(algorithm, nameMember, "The algorithm");
    const found = find(operation, given);
    const result = toDictionary(algorithm, found[1], "The algorithm");
    result.name = found[0];
    return result;
  }

  return { __proto__: null, normalize, toIdentifier, supports };
}

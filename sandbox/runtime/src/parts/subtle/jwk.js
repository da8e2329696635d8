// JSON Web Keys (https://w3c.github.io/webcrypto/#JsonWebKey-dictionary, 15; RFC 7517, RFC 7518, RFC 8037): their shape is
// checked here, their numbers in the host.

const aes = { __proto__: null, "AES-CTR": "CTR", "AES-CBC": "CBC", "AES-GCM": "GCM", "AES-KW": "KW" };
const curveAlgorithms = { __proto__: null, "P-256": "ES256", "P-384": "ES384", "P-521": "ES512" };

const hashDigits = { __proto__: null, "SHA-1": "1", "SHA-256": "256", "SHA-384": "384", "SHA-512": "512" };

/** What "alg" says for a key of this algorithm; undefined if nothing. */
export function algOf(algorithm, bits) {
  const digits = algorithm.hash === undefined ? "" : hashDigits[algorithm.hash.name];
  switch (algorithm.name) {
    case "RSASSA-PKCS1-v1_5": return `RS${digits}`;
    case "RSA-PSS": return `PS${digits}`;
    case "RSA-OAEP": return digits === "1" ? "RSA-OAEP" : `RSA-OAEP-${digits}`;
    case "HMAC": return `HS${digits}`;
    case "ECDSA": return curveAlgorithms[algorithm.namedCurve];
    case "Ed25519":
    case "Ed448": return algorithm.name;
    default: return algorithm.name in aes ? `A${bits}${aes[algorithm.name]}` : undefined;
  }
}

/** Members of a key type besides the general ones, in the order of the host's operations; private ones from `from` on. */
export const memberNames = {
  __proto__: null,
  oct: { names: ["k"], from: 0 },
  RSA: { names: ["n", "e", "d", "p", "q", "dp", "dq", "qi"], from: 2 },
  EC: { names: ["x", "y", "d"], from: 2 },
  OKP: { names: ["x", "d"], from: 1 },
};

export function makeJWK(core, { dataError }) {
  const { toBoolean, toDictionary, toDOMString, toSequence } = core;
  const other = [["d", toDOMString], ["r", toDOMString], ["t", toDOMString]];
  const members = [
    ["alg", toDOMString], ["crv", toDOMString], ["d", toDOMString], ["dp", toDOMString], ["dq", toDOMString], ["e", toDOMString], ["ext", toBoolean],
    ["k", toDOMString], ["key_ops", (value, what) => toSequence(value, toDOMString, what)], ["kty", toDOMString], ["n", toDOMString],
    ["oth", (value, what) => toSequence(value, (item) => toDictionary(item, other, what), what)],
    ["p", toDOMString], ["q", toDOMString], ["qi", toDOMString], ["use", toDOMString], ["x", toDOMString], ["y", toDOMString],
  ];

  const toJWK = (value) => toDictionary(value, members, "The JSON Web Key");

  // The checks that all algorithms make (25.7.3 and others): kty, use, key_ops, ext.
  function check(jwk, kty, use, extractable, usages) {
    if (jwk.kty !== kty) throw dataError(`The JSON Web Key's 'kty' is not ${kty}.`);
    if (usages.length > 0 && jwk.use !== undefined && jwk.use !== use) throw dataError(`The JSON Web Key's 'use' is not ${use}.`);
    if (jwk.key_ops !== undefined) checkOperations(jwk.key_ops, usages);
    if (jwk.ext === false && extractable) throw dataError("The JSON Web Key is not extractable.");
  }

  function checkOperations(operations, usages) {
    const seen = { __proto__: null };
    for (let i = 0; i < operations.length; i++) {
      if (operations[i] in seen) throw dataError("The JSON Web Key's 'key_ops' has a usage twice.");
      seen[operations[i]] = true;
    }
    for (let i = 0; i < usages.length; i++) {
      if (!(usages[i] in seen)) throw dataError("The JSON Web Key's 'key_ops' lacks a usage that is asked for.");
    }
  }

  // The text of an exported key, whatever the program has put on prototypes.
  function stringify(jwk) {
    let text = "";
    for (const name in jwk) {
      const value = jwk[name];
      let json = "";
      if (name === "key_ops") {
        for (let i = 0; i < value.length; i++) json += `${i > 0 ? "," : ""}"${value[i]}"`;
        json = `[${json}]`;
      } else {
        json = typeof value === "boolean" ? `${value}` : `"${value}"`;
      }
      text += `${text === "" ? "" : ","}"${name}":${json}`;
    }
    return `{${text}}`;
  }

  return { __proto__: null, toJWK, check, stringify };
}

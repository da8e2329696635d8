// data: URLs (Fetch, 6: https://fetch.spec.whatwg.org/#data-urls).

export function makeDataURLs(core, mime) {
  const { Bytes, native, stringCharCodeAt, stringEndsWith, stringIndexOf, stringSlice, stringStartsWith, stringToLowerCase } = core;

  function sextet(unit) {
    if (unit >= 65 && unit <= 90) return unit - 65;
    if (unit >= 97 && unit <= 122) return unit - 71;
    if (unit >= 48 && unit <= 57) return unit + 4;
    return unit === 43 ? 62 : unit === 47 ? 63 : -1;
  }

  /** Forgiving-base64 decode (https://infra.spec.whatwg.org/#forgiving-base64-decode) of bytes; null is failure. */
  function decodeBase64(input) {
    const sextets = new Bytes(input.length);
    let count = 0;
    let padding = 0;
    for (let i = 0; i < input.length; i++) {
      const unit = input[i];
      if (unit === 32 || unit === 9 || unit === 10 || unit === 12 || unit === 13) continue;
      if (unit === 61) {
        padding++;
        continue;
      }
      const value = sextet(unit);
      if (value < 0 || padding > 0) return null;
      sextets[count++] = value;
    }
    if (count % 4 === 1 || padding > 2 || (padding > 0 && (count + padding) % 4 !== 0)) return null;
    const output = new Bytes(core.floor((count * 3) / 4));
    for (let i = 0, at = 0; i < count; i += 4) {
      const bits = (sextets[i] << 18) | (sextets[i + 1] << 12) | ((i + 2 < count ? sextets[i + 2] : 0) << 6) | (i + 3 < count ? sextets[i + 3] : 0);
      for (let shift = 16; shift >= 0 && at < output.length; shift -= 8) output[at++] = (bits >> shift) & 255;
    }
    return output;
  }

  const isSpace = (unit) => unit === 32 || unit === 9 || unit === 10 || unit === 12 || unit === 13;
  function strip(text) {
    let from = 0;
    let to = text.length;
    while (from < to && isSpace(stringCharCodeAt(text, from))) from++;
    while (to > from && isSpace(stringCharCodeAt(text, to - 1))) to--;
    return stringSlice(text, from, to);
  }

  // Whether a type ends in `;` spaces `base64`; the text before that, or undefined.
  function beforeBase64(type) {
    if (!stringEndsWith(stringToLowerCase(type), "base64")) return undefined;
    let at = type.length - 6;
    while (at > 0 && type[at - 1] === " ") at--;
    return at > 0 && type[at - 1] === ";" ? stringSlice(type, 0, at - 1) : undefined;
  }

  /** {type, bytes} of a serialized data: URL without its fragment; null is failure. */
  return function read(url) {
    const text = stringSlice(url, 5);
    const comma = stringIndexOf(text, ",");
    if (comma < 0) return null;
    let type = strip(stringSlice(text, 0, comma));
    let bytes = core.need("urls").percentDecodeBytes(stringSlice(text, comma + 1), false);
    const rest = beforeBase64(type);
    if (rest !== undefined) {
      bytes = decodeBase64(bytes);
      if (bytes === null) return null;
      type = rest;
    }
    if (stringStartsWith(type, ";")) type = `text/plain${type}`;
    const parsed = mime.parse(type);
    return { __proto__: null, type: parsed === null ? "text/plain;charset=US-ASCII" : mime.serialize(parsed), bytes };
  };
}

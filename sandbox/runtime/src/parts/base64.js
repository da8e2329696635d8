// atob and btoa (HTML, 8.3, https://html.spec.whatwg.org/#atob).

import { makeAlphabet } from "../alphabet.js";

export default function base64(core) {
  const { Bytes, checkGlobal, makeException, native, requireArguments, stringCharCodeAt, toDOMString } = core;
  const refuse = (message) => makeException(message, "InvalidCharacterError");

  const { codes, values } = makeAlphabet(core, "+/");
  const skip = 64;

  // Infra, "forgiving-base64 decode" (https://infra.spec.whatwg.org/#forgiving-base64-decode); undefined for failure.
  function decode(text) {
    const digits = new Bytes(text.length);
    let length = 0;
    let padding = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = stringCharCodeAt(text, i);
      const value = unit < 128 ? values[unit] : 255;
      if (value === skip) continue;
      if (unit === 61) {
        padding++;
        continue;
      }
      if (value === 255 || padding > 0) return undefined;
      digits[length++] = value;
    }
    if (padding > 2 || (padding > 0 && (length + padding) % 4 !== 0) || length % 4 === 1) return undefined;
    const bytes = new Bytes((length * 3) >> 2);
    for (let from = 0, to = 0; from < length; from += 4, to += 3) {
      const word = (digits[from] << 18) | (digits[from + 1] << 12) | (digits[from + 2] << 6) | digits[from + 3];
      bytes[to] = word >> 16;
      bytes[to + 1] = word >> 8;
      bytes[to + 2] = word;
    }
    return bytes;
  }

  function encode(text) {
    const bytes = new Bytes(core.floor((text.length + 2) / 3) * 4);
    let to = 0;
    for (let i = 0; i < text.length; i += 3) {
      const a = stringCharCodeAt(text, i);
      const b = i + 1 < text.length ? stringCharCodeAt(text, i + 1) : 0;
      const c = i + 2 < text.length ? stringCharCodeAt(text, i + 2) : 0;
      if ((a | b | c) > 255) return undefined;
      const word = (a << 16) | (b << 8) | c;
      bytes[to++] = codes[word >> 18];
      bytes[to++] = codes[(word >> 12) & 63];
      bytes[to++] = i + 1 < text.length ? codes[(word >> 6) & 63] : 61;
      bytes[to++] = i + 2 < text.length ? codes[word & 63] : 61;
    }
    return native.latin1(bytes);
  }

  return {
    __proto__: null,
    atob(data) {
      checkGlobal(this);
      requireArguments("atob", arguments.length, 1);
      const bytes = decode(toDOMString(data));
      if (bytes === undefined) throw refuse("The string to be decoded is not correctly encoded.");
      return native.latin1(bytes);
    },
    btoa(data) {
      checkGlobal(this);
      requireArguments("btoa", arguments.length, 1);
      const text = encode(toDOMString(data));
      if (text === undefined) throw refuse("The string to be encoded has characters above U+00FF: encode it with TextEncoder first.");
      return text;
    },
  };
}

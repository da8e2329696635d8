// Percent encoding (URL Standard, https://url.spec.whatwg.org/#percent-encoded-bytes, 1.3) and the format
// application/x-www-form-urlencoded (5).

// The percent-encode sets, one bit each. All contain the C0 controls and everything above U+007E.
export const C0 = 1;
export const FRAGMENT = 2;
export const QUERY = 4;
export const SPECIAL_QUERY = 8;
export const PATH = 16;
export const USERINFO = 32;
export const FORM = 64;

// The members of each set beyond those of the sets that it contains.
const members = [
  [FRAGMENT, ' "<>`'],
  [QUERY | SPECIAL_QUERY | PATH | USERINFO | FORM, ' "#<>'],
  [SPECIAL_QUERY, "'"],
  [PATH | USERINFO | FORM, "?^`{}"],
  [USERINFO | FORM, "/:;=@[\\]|"],
  [FORM, "$%&+,!'()~"],
];

const hexDigit = (code) => {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
};

export function makeEncode({ Bytes, list, native, push, stringCharCodeAt: at, stringSlice: slice, stringIndexOf: indexOf }) {
  const sets = new Bytes(128);
  for (let i = 0; i < 128; i++) if (i < 32 || i > 126) sets[i] = 255;
  for (let i = 0; i < members.length; i++) {
    for (let k = 0; k < members[i][1].length; k++) sets[at(members[i][1], k)] |= members[i][0];
  }
  const hex = "0123456789ABCDEF";
  const escapeByte = (byte) => `%${hex[byte >> 4]}${hex[byte & 15]}`;

  // UTF-8 percent-encodes a string of well-formed UTF-16. from is where the first unit may need it.
  function percentEncode(text, set, from = 0) {
    for (let i = from; i < text.length; i++) {
      const code = at(text, i);
      if (code > 126 || sets[code] & set) return encodeFrom(text, set, i);
    }
    return text;
  }

  function encodeFrom(text, set, start) {
    let result = slice(text, 0, start);
    let done = start;
    for (let i = start; i < text.length; i++) {
      const code = at(text, i);
      if (code < 128) {
        if (!(sets[code] & set)) continue;
        result += slice(text, done, i) + (code === 32 && set === FORM ? "+" : escapeByte(code));
      } else {
        const pair = code >= 0xd800 && code < 0xdc00;
        const bytes = native.utf8Encode(slice(text, i, pair ? i + 2 : i + 1));
        result += slice(text, done, i);
        for (let k = 0; k < bytes.length; k++) result += escapeByte(bytes[k]);
        if (pair) i++;
      }
      done = i + 1;
    }
    return result + slice(text, done);
  }

  // The bytes of a text, percent-decoded; its '+' stand for spaces if form is true.
  function percentDecodeBytes(text, form) {
    const bytes = native.utf8Encode(text);
    let size = 0;
    for (let i = 0; i < bytes.length; i++) {
      let byte = bytes[i];
      if (byte === 37 && i + 2 < bytes.length) {
        const high = hexDigit(bytes[i + 1]);
        const low = hexDigit(bytes[i + 2]);
        if (high >= 0 && low >= 0) {
          byte = high * 16 + low;
          i += 2;
        }
      } else if (byte === 43 && form) {
        byte = 32;
      }
      bytes[size++] = byte;
    }
    return new Bytes(bytes.buffer, 0, size);
  }

  // Percent-decodes and then UTF-8 decodes without BOM.
  function percentDecode(text, form = false) {
    if (indexOf(text, "%") < 0 && !(form && indexOf(text, "+") >= 0)) return text;
    return native.utf8Decode(percentDecodeBytes(text, form), false);
  }

  // The urlencoded parser (5.1): a list of [name, value].
  function parseForm(text) {
    const pairs = list();
    for (let start = 0; start <= text.length;) {
      let end = indexOf(text, "&", start);
      if (end < 0) end = text.length;
      if (end > start) {
        const piece = slice(text, start, end);
        let equals = indexOf(piece, "=");
        if (equals < 0) equals = piece.length;
        push(pairs, [percentDecode(slice(piece, 0, equals), true), percentDecode(slice(piece, equals + 1), true)]);
      }
      start = end + 1;
    }
    return pairs;
  }

  // The urlencoded serializer (5.2).
  function serializeForm(pairs) {
    let text = "";
    for (let i = 0; i < pairs.length; i++) {
      text += `${i > 0 ? "&" : ""}${percentEncode(pairs[i][0], FORM)}=${percentEncode(pairs[i][1], FORM)}`;
    }
    return text;
  }

  return { __proto__: null, percentEncode, percentDecode, percentDecodeBytes, parseForm, serializeForm };
}

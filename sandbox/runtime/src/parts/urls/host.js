// Hosts of URLs (URL Standard, https://url.spec.whatwg.org/#hosts-(domains-and-ip-addresses), 3). A host is kept
// serialized, since parsing what was serialized gives the same.

import { C0 } from "./encode.js";

// Forbidden host code points, and those that are forbidden in domains only.
const forbiddenInHosts = "\0\t\n\r #/:<>?@[\\]^|";
const forbiddenInDomains = "%\x7f";

export function makeHost(core, { percentEncode, percentDecode }) {
  const { Bytes, floor, list, need, numberToString, push, stringCharAt: charAt, stringCharCodeAt: at, stringIndexOf: indexOf, stringSlice: slice, stringToLowerCase: lower } = core;
  const forbidden = new Bytes(128);
  for (let i = 0; i < 32; i++) forbidden[i] = 2;
  for (let i = 0; i < forbiddenInDomains.length; i++) forbidden[at(forbiddenInDomains, i)] = 2;
  for (let i = 0; i < forbiddenInHosts.length; i++) forbidden[at(forbiddenInHosts, i)] = 1;

  // The host parser (3.5): the host serialized, or null for failure.
  function parseHost(input, opaque) {
    if (charAt(input, 0) === "[") {
      const pieces = charAt(input, input.length - 1) === "]" ? parseIPv6(slice(input, 1, -1)) : null;
      return pieces && `[${serializeIPv6(pieces)}]`;
    }
    if (opaque) {
      for (let i = 0; i < input.length; i++) if (forbidden[at(input, i)] === 1) return null;
      return percentEncode(input, C0);
    }
    const domain = domainToASCII(percentDecode(input));
    if (domain === null || domain === "") return null;
    for (let i = 0; i < domain.length; i++) if (forbidden[at(domain, i)]) return null;
    return endsInNumber(domain) ? parseIPv4(domain) : domain;
  }

  // Domain to ASCII (3.3) with beStrict false. Only names that need the tables of Unicode load them.
  function domainToASCII(domain) {
    let plain = true;
    for (let i = 0; i < domain.length && plain; i++) plain = at(domain, i) < 128;
    const name = plain ? lower(domain) : domain;
    if (plain && !(indexOf(name, "xn--") === 0 || indexOf(name, ".xn--") >= 0)) return name;
    return need("idna").toASCII(name);
  }

  const isDigits = (text) => {
    for (let i = 0; i < text.length; i++) if (at(text, i) < 48 || at(text, i) > 57) return false;
    return text !== "";
  };

  // The ends-in-a-number checker (3.5).
  function endsInNumber(domain) {
    const end = domain[domain.length - 1] === "." ? domain.length - 1 : domain.length;
    let start = end;
    while (start > 0 && domain[start - 1] !== ".") start--;
    const last = slice(domain, start, end);
    // Whether it is hexadecimal need not be known: what starts so is a number or is refused by parseIPv4.
    return isDigits(last) || parseIPv4Number(last) >= 0;
  }

  // NaN for failure.
  function parseIPv4Number(text) {
    if (text === "") return NaN;
    let radix = 10;
    let i = 0;
    if (charAt(text, 0) === "0" && text.length > 1) {
      const hexadecimal = charAt(text, 1) === "x" || charAt(text, 1) === "X";
      radix = hexadecimal ? 16 : 8;
      i = hexadecimal ? 2 : 1;
    }
    let value = 0;
    for (; i < text.length; i++) {
      const code = at(text, i);
      const letter = code | 32;
      const digit = code >= 48 && code <= 57 ? code - 48 : letter >= 97 && letter <= 102 ? letter - 87 : 99;
      if (digit >= radix) return NaN;
      value = value * radix + digit;
    }
    return value;
  }

  function parseIPv4(text) {
    const end = charAt(text, text.length - 1) === "." ? text.length - 1 : text.length;
    const numbers = list();
    for (let start = 0; start <= end;) {
      let dot = indexOf(text, ".", start);
      if (dot < 0 || dot > end) dot = end;
      if (numbers.length === 4) return null;
      const number = parseIPv4Number(slice(text, start, dot));
      if (!(number >= 0)) return null;
      push(numbers, number);
      start = dot + 1;
    }
    const count = numbers.length;
    let address = numbers[count - 1];
    if (address >= 256 ** (5 - count)) return null;
    for (let i = 0; i < count - 1; i++) {
      if (numbers[i] > 255) return null;
      address += numbers[i] * 256 ** (3 - i);
    }
    return `${floor(address / 16777216)}.${(address >> 16) & 255}.${(address >> 8) & 255}.${address & 255}`;
  }

  // The IPv6 parser (3.5): eight pieces, or null.
  function parseIPv6(text) {
    const pieces = [0, 0, 0, 0, 0, 0, 0, 0];
    let piece = 0;
    let compress = -1;
    let i = 0;
    if (charAt(text, 0) === ":") {
      if (charAt(text, 1) !== ":") return null;
      i = 2;
      compress = ++piece;
    }
    while (i < text.length) {
      if (piece === 8) return null;
      if (charAt(text, i) === ":") {
        if (compress >= 0) return null;
        i++;
        compress = ++piece;
        continue;
      }
      let value = 0;
      let length = 0;
      for (let digit; length < 4 && i < text.length && (digit = parseIPv4Number(`0x${charAt(text, i)}`)) >= 0; i++, length++) {
        value = value * 16 + digit;
      }
      if (charAt(text, i) === ".") {
        if (length === 0 || piece > 6) return null;
        const tail = parseDotted(slice(text, i - length));
        if (tail === null) return null;
        pieces[piece++] = tail[0];
        pieces[piece++] = tail[1];
        break;
      }
      if (charAt(text, i) === ":") {
        if (++i === text.length) return null;
      } else if (i < text.length) {
        return null;
      }
      pieces[piece++] = value;
    }
    if (compress < 0) return piece === 8 ? pieces : null;
    for (let to = 7; piece > compress;) {
      const value = pieces[--piece];
      pieces[piece] = 0;
      pieces[to--] = value;
    }
    return pieces;
  }

  // The IPv4 address at the end of an IPv6 address: strict, four decimal numbers without leading zeros.
  function parseDotted(text) {
    const numbers = list();
    for (let start = 0; start <= text.length;) {
      let dot = indexOf(text, ".", start);
      if (dot < 0) dot = text.length;
      const number = slice(text, start, dot);
      if (!isDigits(number) || number.length > 3 || (number.length > 1 && number[0] === "0") || +number > 255) return null;
      push(numbers, +number);
      start = dot + 1;
    }
    return numbers.length === 4 ? [numbers[0] * 256 + numbers[1], numbers[2] * 256 + numbers[3]] : null;
  }

  // The IPv6 serializer (3.6): the first longest run of two or more zeros becomes "::".
  function serializeIPv6(pieces) {
    let best = -1;
    let longest = 1;
    for (let i = 0, run = 0; i < 8; i++) {
      run = pieces[i] === 0 ? run + 1 : 0;
      if (run > longest) {
        longest = run;
        best = i - run + 1;
      }
    }
    let text = "";
    for (let i = 0; i < 8; i++) {
      if (i === best) {
        text += i === 0 ? "::" : ":";
        i += longest - 1;
      } else {
        text += numberToString(pieces[i], 16) + (i < 7 ? ":" : "");
      }
    }
    return text;
  }

  return { __proto__: null, parseHost, domainToASCII };
}

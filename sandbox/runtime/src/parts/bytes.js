// Base64 and hex of Uint8Array (ECMA-262, 23.3, of https://tc39.es/proposal-arraybuffer-base64/). V8 13.6 has all but two
// of the methods behind a flag, and those that encode are wrong: they forget where in its buffer a view begins, and toHex
// takes bytes above 127 for negative numbers (2026-11).

import { makeAlphabet } from "../alphabet.js";
import { once } from "../once.js";

const handlings = ["loose", "strict", "stop-before-partial"];
const noOptions = { __proto__: null };

export default function bytes(core) {
  const {
    bufferTransfer, Bytes, isObject, min, native, SafeSyntaxError, SafeTypeError, stringCharCodeAt, typedArrayBuffer, typedArrayLength,
    typedArraySet, typedArrayTag,
  } = core;
  const usual = once(() => makeAlphabet(core, "+/"));
  const forURLs = once(() => makeAlphabet(core, "-_"));
  const empty = new Bytes(0);
  const digits = "0123456789abcdef";
  const noBase64 = "Found a character that cannot be part of a valid base64 string.";
  const endsEarly = "The base64 input terminates with a single character, excluding padding (=).";
  const noHex = "Input string must contain hex characters in even length";

  // ---- arguments

  function check(view, method) {
    if (typedArrayTag(view) !== "Uint8Array") throw new SafeTypeError(`${method}: the receiver is not a Uint8Array.`);
  }
  // The length of a view, whose buffer must be there.
  function lengthOf(view) {
    typedArraySet(view, empty); // throws if it is not
    return typedArrayLength(view);
  }
  function checkText(text, method) {
    if (typeof text !== "string") throw new SafeTypeError(`${method}: the input is not a string.`);
  }
  function toOptions(options, method) {
    if (options === undefined) return noOptions;
    if (!isObject(options)) throw new SafeTypeError(`${method}: the options are not an object.`);
    return options;
  }
  function toAlphabet({ alphabet }, method) {
    if (alphabet === undefined || alphabet === "base64") return usual();
    if (alphabet === "base64url") return forURLs();
    throw new SafeTypeError(`${method}: the alphabet is neither base64 nor base64url.`);
  }
  function toHandling({ lastChunkHandling: handling = "loose" }, method) {
    for (let i = 0; i < handlings.length; i++) if (handlings[i] === handling) return handling;
    throw new SafeTypeError(`${method}: lastChunkHandling is not one of loose, strict and stop-before-partial.`);
  }

  // ---- base64

  function encode(view, { codes }, omitPadding) {
    const length = lengthOf(view);
    const rest = length % 3;
    const size = ((length - rest) / 3) * 4 + (rest === 0 ? 0 : omitPadding ? rest + 1 : 4);
    const text = new Bytes(size);
    let to = 0;
    for (let i = 0; i < length; i += 3) { // what is missing at the end counts as 0, and what is too much is not stored
      const word = (view[i] << 16) | (view[i + 1] << 8) | view[i + 2];
      text[to++] = codes[word >> 18];
      text[to++] = codes[(word >> 12) & 63];
      text[to++] = codes[(word >> 6) & 63];
      text[to++] = codes[word & 63];
    }
    if (rest !== 0 && !omitPadding) for (let i = rest; i < 3; i++) text[size - 3 + i] = 61;
    return native.latin1(text);
  }

  // FromBase64: reads what fits into limit bytes. What was written before a fault counts.
  class Decoder {
    read = 0;
    written = 0;
    fault = undefined;
    bytes;
    #text;
    #values;
    #handling;
    #word = 0; // the characters of the chunk that has begun
    #count = 0;
    constructor(text, { values }, handling, limit) {
      this.#text = text;
      this.#values = values;
      this.#handling = handling;
      this.bytes = new Bytes(min(limit, ((text.length + 3) >> 2) * 3));
      if (limit > 0) this.#decode(limit);
    }
    #decode(limit) {
      const text = this.#text;
      const values = this.#values;
      for (let i = 0; i < text.length;) {
        const unit = stringCharCodeAt(text, i++);
        const value = unit < 128 ? values[unit] : 255;
        if (value === 64) continue;
        if (unit === 61) return this.#pad(this.#skip(i));
        if (value > 63) return this.#fail(noBase64);
        const left = limit - this.written;
        if (left < 3 && this.#count === left + 1) return;
        this.#word = (this.#word << 6) | value;
        if (++this.#count < 4) continue;
        this.#store(3, 0);
        this.read = i;
        if (this.written === limit) return;
      }
      if (this.#count > 0) {
        if (this.#handling === "stop-before-partial") return;
        if (this.#handling === "strict" || this.#count === 1) return this.#fail(endsEarly);
        this.#finish(false);
      }
      this.read = text.length;
    }
    #fail(message) {
      this.fault = new SafeSyntaxError(message);
    }
    #skip(i) {
      while (i < this.#text.length && this.#values[stringCharCodeAt(this.#text, i)] === 64) i++;
      return i;
    }
    // What may follow the first '=': i is the place after it.
    #pad(i) {
      const { length } = this.#text;
      if (this.#count < 2) return this.#fail(noBase64);
      if (this.#count === 2) {
        if (i === length) return this.#handling === "stop-before-partial" ? undefined : this.#fail(endsEarly);
        if (stringCharCodeAt(this.#text, i) === 61) i = this.#skip(i + 1);
      }
      if (i < length) return this.#fail(noBase64);
      if (!this.#finish(this.#handling === "strict")) return this.#fail("The base64 input has bits that are not zero in its last character.");
      this.read = length;
    }
    // Ends with a chunk of two or three characters; false for bits that stand for nothing, if that matters.
    #finish(strict) {
      const spare = this.#count === 2 ? 4 : 2;
      if (strict && (this.#word & ((1 << spare) - 1)) !== 0) return false;
      this.#store(this.#count - 1, spare);
      return true;
    }
    #store(count, spare) {
      for (let i = count - 1; i >= 0; i--) this.bytes[this.written++] = this.#word >> (8 * i + spare);
      this.#word = 0;
      this.#count = 0;
    }
  }

  // ---- hex

  const digit = (unit) => (unit >= 48 && unit <= 57 ? unit - 48 : unit >= 65 && unit <= 70 ? unit - 55 : unit >= 97 && unit <= 102 ? unit - 87 : -1);

  // FromHex, as Decoder.
  function decodeHex(text, limit) {
    const odd = text.length % 2 !== 0;
    const size = odd ? 0 : min(limit, text.length / 2);
    const bytes = new Bytes(size);
    let written = 0;
    for (let value = 0; written < size; written++) {
      value = (digit(stringCharCodeAt(text, 2 * written)) << 4) | digit(stringCharCodeAt(text, 2 * written + 1));
      if (value < 0) break;
      bytes[written] = value;
    }
    return { __proto__: null, read: 2 * written, written, bytes, fault: odd || written < size ? new SafeSyntaxError(noHex) : undefined };
  }

  // ---- results

  function create({ fault, bytes, written }) {
    if (fault !== undefined) throw fault;
    return written === typedArrayLength(bytes) ? bytes : new Bytes(bufferTransfer(typedArrayBuffer(bytes), written));
  }
  function store(view, { fault, bytes, read, written }) {
    typedArraySet(view, new Bytes(typedArrayBuffer(bytes), 0, written));
    if (fault !== undefined) throw fault;
    return { read, written };
  }

  return {
    __proto__: null,
    fromBase64(text, given) {
      const method = "Uint8Array.fromBase64";
      checkText(text, method);
      const options = toOptions(given, method);
      const alphabet = toAlphabet(options, method);
      return create(new Decoder(text, alphabet, toHandling(options, method), Infinity));
    },
    fromHex(text) {
      checkText(text, "Uint8Array.fromHex");
      return create(decodeHex(text, Infinity));
    },
    setFromBase64(view, text, given) {
      const method = "Uint8Array.prototype.setFromBase64";
      check(view, method);
      checkText(text, method);
      const options = toOptions(given, method);
      const alphabet = toAlphabet(options, method);
      const handling = toHandling(options, method);
      return store(view, new Decoder(text, alphabet, handling, lengthOf(view)));
    },
    setFromHex(view, text) {
      check(view, "Uint8Array.prototype.setFromHex");
      checkText(text, "Uint8Array.prototype.setFromHex");
      return store(view, decodeHex(text, lengthOf(view)));
    },
    toBase64(view, given) {
      const method = "Uint8Array.prototype.toBase64";
      check(view, method);
      const options = toOptions(given, method);
      const alphabet = toAlphabet(options, method);
      const { omitPadding } = options;
      return encode(view, alphabet, !!omitPadding);
    },
    toHex(view) {
      check(view, "Uint8Array.prototype.toHex");
      const length = lengthOf(view);
      const text = new Bytes(2 * length);
      for (let i = 0; i < length; i++) {
        text[2 * i] = stringCharCodeAt(digits, view[i] >> 4);
        text[2 * i + 1] = stringCharCodeAt(digits, view[i] & 15);
      }
      return native.latin1(text);
    },
  };
}

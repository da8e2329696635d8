// TextEncoder, TextDecoder and their streams (Encoding Standard, https://encoding.spec.whatwg.org/#api, 7).

import { makeBuffers } from "../../buffers.js";
import { makeDecoders } from "./decoders.js";
import { makeLabels } from "./labels.js";
import { makeStreams } from "./streams.js";

export default function encoding(core) {
  const {
    finish, native, requireArguments, SafeRangeError, SafeTypeError, stringCharCodeAt, stringSlice, toBoolean, toDictionary, toDOMString, toUSVString,
    typedArrayBuffer, typedArrayByteOffset, typedArrayLength, typedArrayTag, isView,
  } = core;
  const { bytesOf } = makeBuffers(core);
  const decoderFor = makeDecoders(core);
  const encodingOf = makeLabels(core);
  const empty = new core.Bytes(0);

  const decoderOptions = [["fatal", toBoolean, false], ["ignoreBOM", toBoolean, false]];
  const decodeOptions = [["stream", toBoolean, false]];

  // The state that TextDecoder and TextDecoderStream share (7.1).
  class Decoding {
    encoding;
    fatal;
    ignoreBOM;
    more = false; // "do not flush"
    seen = false; // whether a BOM can no longer come
    decoder = undefined;
    clean = false; // whether the decoder is as new
    constructor(operation, label, options) {
      const text = toDOMString(label);
      const { fatal, ignoreBOM } = toDictionary(options, decoderOptions, "The options");
      const name = encodingOf(text);
      if (name === undefined || name === "replacement") {
        throw new SafeRangeError(`Failed to construct '${operation}': The encoding label provided ('${stringSlice(text, 0, 100)}') is invalid.`);
      }
      this.encoding = name;
      this.fatal = fatal;
      this.ignoreBOM = ignoreBOM;
    }
    decode(bytes, more) {
      if (!this.more) {
        this.decoder = this.decoder !== undefined && this.clean ? this.decoder : decoderFor(this.encoding, this.fatal);
        this.seen = false;
      }
      this.more = more;
      this.clean = false;
      const text = this.decoder(bytes, more);
      this.clean = !more; // a decoder that has flushed is as new, one that has thrown may not be
      return this.#withoutMark(text);
    }
    // Serialize the I/O queue (7.1): U+FEFF at the start is dropped in UTF-8 and UTF-16.
    #withoutMark(text) {
      if (this.seen || text === "") return text;
      this.seen = true;
      const drops = !this.ignoreBOM && stringCharCodeAt(text, 0) === 0xfeff && stringSlice(this.encoding, 0, 3) === "utf";
      return drops ? stringSlice(text, 1) : text;
    }
  }

  class TextDecoder {
    #decoding;
    constructor(label = "utf-8", options = undefined) {
      native.brand(this); // a platform object, which no structured clone takes
      this.#decoding = new Decoding("TextDecoder", label, options);
    }
    get encoding() {
      return this.#decoding.encoding;
    }
    get fatal() {
      return this.#decoding.fatal;
    }
    get ignoreBOM() {
      return this.#decoding.ignoreBOM;
    }
    decode(input = undefined, options = undefined) {
      const decoding = this.#decoding;
      const given = input === undefined ? empty : input;
      if (given !== empty) bytesOf(given, "The input", true);
      const { stream } = toDictionary(options, decodeOptions, "The options"); // may detach the input
      return decoding.decode(given === empty ? empty : bytesOf(given, "The input", true), stream);
    }
  }
  finish(TextDecoder, { __proto__: null, name: "TextDecoder" });

  class TextEncoder {
    #brand;
    constructor() {
      native.brand(this); // a platform object, which no structured clone takes
    }
    get encoding() {
      this.#brand;
      return "utf-8";
    }
    encode(input = "") {
      this.#brand;
      return native.utf8Encode(toUSVString(input));
    }
    encodeInto(source, destination) {
      this.#brand;
      requireArguments("encodeInto' on 'TextEncoder", arguments.length, 2);
      const text = toUSVString(source);
      if (!isView(destination) || typedArrayTag(destination) !== "Uint8Array") throw new SafeTypeError("The destination is not a Uint8Array.");
      const counts = native.utf8EncodeInto(text, bytesOf(destination, "The destination", true));
      return { read: counts[0], written: counts[1] };
    }
  }
  finish(TextEncoder, { __proto__: null, name: "TextEncoder" });

  // "BOM sniff" (6).
  function encodingOfMark(bytes) {
    if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
    if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
    return bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : undefined;
  }

  /** "decode" (6): a byte order mark decides, else the encoding of that name; wrong bytes are replaced. */
  function decode(bytes, name) {
    const marked = encodingOfMark(bytes);
    if (marked === undefined && name === "replacement") return typedArrayLength(bytes) > 0 ? "\ufffd" : "";
    const skip = marked === undefined ? 0 : marked === "utf-8" ? 3 : 2;
    const rest = new core.Bytes(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + skip, typedArrayLength(bytes) - skip);
    return decoderFor(marked ?? name, false)(rest, false);
  }

  return { __proto__: null, TextDecoder, TextEncoder, encodingOf, decode, ...makeStreams(core, Decoding, bytesOf) };
}

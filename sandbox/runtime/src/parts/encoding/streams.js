// TextDecoderStream and TextEncoderStream (Encoding Standard, https://encoding.spec.whatwg.org/#interface-textdecoderstream,
// 7.5 and 7.6): a TransformStream behind, whose sides they show.

export function makeStreams(core, Decoding, bytesOf) {
  const { finish, native, need, stringCharCodeAt, stringSlice, toDOMString, toUSVString } = core;
  const isLead = (code) => code >= 0xd800 && code < 0xdc00;
  const empty = new core.Bytes(0);

  // The sides of a new TransformStream; transform and flush return what to enqueue, if anything.
  function makeSides(transform, flush) {
    const enqueue = (chunk) => {
      if (chunk !== undefined) sides.enqueue(chunk);
    };
    const sides = need("streams").setUpTransform({
      __proto__: null, transform: (chunk) => enqueue(transform(chunk)), flush: () => enqueue(flush()),
    });
    return sides;
  }

  class TextDecoderStream {
    #decoding;
    #sides;
    constructor(label = "utf-8", options = undefined) {
      native.brand(this); // a platform object, which no structured clone takes
      const decoding = new Decoding("TextDecoderStream", label, options);
      this.#decoding = decoding;
      this.#sides = makeSides(
        (chunk) => decoding.decode(bytesOf(chunk, "The chunk", true), true) || undefined,
        () => decoding.decode(empty, false) || undefined,
      );
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
    get readable() {
      return this.#sides.readable;
    }
    get writable() {
      return this.#sides.writable;
    }
  }
  finish(TextDecoderStream, { __proto__: null, name: "TextDecoderStream" });

  class TextEncoderStream {
    #sides;
    constructor() {
      native.brand(this); // a platform object, which no structured clone takes
      let lead = ""; // a surrogate that waits for its other half
      this.#sides = makeSides(
        (chunk) => {
          let text = lead + toDOMString(chunk);
          lead = "";
          if (text !== "" && isLead(stringCharCodeAt(text, text.length - 1))) {
            lead = stringSlice(text, -1);
            text = stringSlice(text, 0, -1);
          }
          return text === "" ? undefined : native.utf8Encode(toUSVString(text));
        },
        () => (lead === "" ? undefined : native.utf8Encode("\ufffd")),
      );
    }
    get encoding() {
      this.#sides;
      return "utf-8";
    }
    get readable() {
      return this.#sides.readable;
    }
    get writable() {
      return this.#sides.writable;
    }
  }
  finish(TextEncoderStream, { __proto__: null, name: "TextEncoderStream" });

  return { __proto__: null, TextDecoderStream, TextEncoderStream };
}

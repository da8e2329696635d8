// Decoders of the encodings that are not UTF-8 or UTF-16 (Encoding Standard, https://encoding.spec.whatwg.org/, 9 to 14):
// mostly tables, and so a part of its own. It runs in a realm of its own: what goes in is an ArrayBuffer, which has to be
// wrapped here, and what comes out is a string.

import { createMultibyteDecoder } from "@exodus/bytes/multi-byte.js";
import { createSinglebyteDecoder } from "@exodus/bytes/single-byte.js";

const isMultiByte = new Set(["gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr"]);

export default () => ({
  __proto__: null,
  /** Returns a function of (buffer, more) that gives the text; with fatal it throws something where the bytes are wrong. */
  makeDecoder(name, fatal) {
    const decode = (isMultiByte.has(name) ? createMultibyteDecoder : createSinglebyteDecoder)(name, !fatal);
    return (buffer, more) => decode(new Uint8Array(buffer), more);
  },
});

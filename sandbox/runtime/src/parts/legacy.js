// Decoders of the encodings that are not UTF-8 or UTF-16 (Encoding Standard, https://encoding.spec.whatwg.org/, 9 to 14):
// mostly tables, and so a part of its own.

import { createMultibyteDecoder } from "@exodus/bytes/multi-byte.js";
import { createSinglebyteDecoder } from "@exodus/bytes/single-byte.js";

export default () => ({ __proto__: null, createMultibyteDecoder, createSinglebyteDecoder });

// What the URL Standard (https://url.spec.whatwg.org/) says of texts: parsing, serializing and percent encoding. The
// interfaces are in the part "url".

import { makeEncode } from "./encode.js";
import { makeHost } from "./host.js";
import { makeParser } from "./parser.js";

export default function urls(core) {
  const encode = makeEncode(core);
  const host = makeHost(core, encode);
  return { __proto__: null, ...encode, ...host, ...makeParser(core, encode, host) };
}

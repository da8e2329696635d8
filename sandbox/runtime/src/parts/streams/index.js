// The Streams Standard (https://streams.spec.whatwg.org/): the interfaces, and what other parts need of streams. The
// abstract operations are in the other files of this folder, over objects without interfaces: Readable, Writable,
// Transform and their controllers, readers and writers.

import { exportLater, once } from "../../once.js";
import { useCore } from "./core.js";
import { makeExports } from "./exports.js";
import { makeReadableInterfaces } from "./readable-interfaces.js";
import { makeStrategies } from "./strategies.js";
import { makeTransformInterfaces } from "./transform-interfaces.js";
import { makeWritableInterfaces } from "./writable-interfaces.js";

export default function streams(core) {
  useCore(core);
  // Other classes than those of readable streams of chunks are made when a program asks for them.
  const writable = once(makeWritableInterfaces);
  const writables = {
    __proto__: null,
    makeWritable: (slots) => writable().makeWritable(slots),
    writableOf: (value) => writable().writableOf(value),
  };
  const readables = makeReadableInterfaces(writables);
  const transform = once(() => makeTransformInterfaces(readables, writables));
  const transforms = {
    __proto__: null,
    makeTransform: (slots) => transform().makeTransform(slots),
    transformOf: (value) => transform().transformOf(value),
  };
  const strategies = once(makeStrategies);
  const exports = {
    __proto__: null,
    ...readables.interfaces,
    ...makeExports(readables, writables, transforms),
  };
  const later = (name, make) => exportLater(exports, name, () => make().interfaces[name]);
  later("ByteLengthQueuingStrategy", strategies);
  later("CountQueuingStrategy", strategies);
  later("ReadableStreamBYOBReader", readables.bytes);
  later("ReadableByteStreamController", readables.bytes);
  later("ReadableStreamBYOBRequest", readables.bytes);
  later("WritableStream", writable);
  later("WritableStreamDefaultWriter", writable);
  later("WritableStreamDefaultController", writable);
  later("TransformStream", transform);
  later("TransformStreamDefaultController", transform);
  return exports;
}

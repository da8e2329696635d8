// The Streams Standard (https://streams.spec.whatwg.org/): the interfaces, and what other parts need of streams. The
// abstract operations are in the other files of this folder, over objects without interfaces: Readable, Writable,
// Transform and their controllers, readers and writers.

import { useCore } from "./core.js";
import { makeExports } from "./exports.js";
import { makeReadableInterfaces } from "./readable-interfaces.js";
import { makeStrategies } from "./strategies.js";
import { makeTransformInterfaces } from "./transform-interfaces.js";
import { makeWritableInterfaces } from "./writable-interfaces.js";

export default function streams(core) {
  useCore(core);
  const writables = makeWritableInterfaces();
  const readables = makeReadableInterfaces(writables);
  const transforms = makeTransformInterfaces(readables, writables);
  return {
    __proto__: null,
    ...makeStrategies(),
    ...writables.interfaces,
    ...readables.interfaces,
    ...transforms.interfaces,
    ...makeExports(readables, writables, transforms),
  };
}

// The interfaces of transform streams (Streams, 6: https://streams.spec.whatwg.org/#ts).

import {
  apply, bare, defineProperty, finish, illegalConstructor, isObject, native, SafeRangeError, SafeTypeError, toCallback, toDictionary,
} from "./core.js";
import { Deferred } from "./promises.js";
import { highWaterMarkOf, sizeOf, toStrategy } from "./strategies.js";
import { nothing, promised, Transform } from "./transform.js";

const transformerMembers = () => [
  ["cancel", toCallback], ["flush", toCallback], ["readableType", (value) => value], ["start", toCallback], ["transform", toCallback],
  ["writableType", (value) => value],
];

export function makeTransformInterfaces({ makeReadable }, { makeWritable }) {
  let transformOf;

  class TransformStreamDefaultController {
    #slots;
    constructor(slots) {
      if (arguments.length !== 2 || arguments[1] !== bare) throw illegalConstructor();
      this.#slots = slots;
    }
    get desiredSize() {
      return this.#slots.desiredSize();
    }
    enqueue(chunk = undefined) {
      this.#slots.enqueue(chunk);
    }
    error(reason = undefined) {
      this.#slots.error(reason);
    }
    terminate() {
      this.#slots.terminate();
    }
  }
  defineProperty(TransformStreamDefaultController, "length", { __proto__: null, value: 0, configurable: true });

  class TransformStream {
    #slots;
    static {
      transformOf = (value) => {
        if (!isObject(value) || !(#slots in value)) throw new SafeTypeError("The value is not a TransformStream.");
        return value.#slots;
      };
    }
    constructor(transformer = undefined, writableStrategy = undefined, readableStrategy = undefined) {
      native.brand(this);
      if (writableStrategy === bare) {
        this.#slots = transformer;
        transformer.object = this;
        return;
      }
      if (transformer !== undefined && !isObject(transformer)) throw new SafeTypeError("The transformer is not an object.");
      const writable = toStrategy(writableStrategy);
      const readable = toStrategy(readableStrategy);
      const dictionary = toDictionary(transformer, transformerMembers(), "The transformer");
      if (dictionary.readableType !== undefined) throw new SafeRangeError("The transformer's readableType must be undefined.");
      if (dictionary.writableType !== undefined) throw new SafeRangeError("The transformer's writableType must be undefined.");
      this.#slots = setUp(transformer, dictionary, writable, readable);
      this.#slots.object = this;
    }
    get readable() {
      return this.#slots.readable.object;
    }
    get writable() {
      return this.#slots.writable.object;
    }
  }

  function setUp(transformer, { start, transform, flush, cancel }, writable, readable) {
    const readableMark = highWaterMarkOf(readable, 0);
    const readableSize = sizeOf(readable);
    const writableMark = highWaterMarkOf(writable, 1);
    const writableSize = sizeOf(writable);
    const started = new Deferred();
    const slots = new Transform(makeReadable, makeWritable, started.promise, { readable: readableMark, writable: writableMark }, { readable: readableSize, writable: writableSize });
    const object = (slots.controllerObject = new TransformStreamDefaultController(slots, bare));
    slots.algorithms = {
      __proto__: null,
      transform: transform === undefined
        ? (chunk) => promised(() => slots.enqueue(chunk))
        : (chunk) => promised(() => apply(transform, transformer, [chunk, object])),
      flush: flush === undefined ? nothing : () => promised(() => apply(flush, transformer, [object])),
      cancel: cancel === undefined ? nothing : (reason) => promised(() => apply(cancel, transformer, [reason])),
    };
    started.resolve(start === undefined ? undefined : apply(start, transformer, [object]));
    return slots;
  }

  const interfaces = { __proto__: null, TransformStream, TransformStreamDefaultController };
  for (const name in interfaces) finish(interfaces[name], { __proto__: null, name });
  const makeTransform = (slots) => new TransformStream(slots, bare);
  return { __proto__: null, interfaces, makeTransform, transformOf };
}

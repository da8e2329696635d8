// The interfaces of readable streams (Streams, 4: https://streams.spec.whatwg.org/#rs). The private field of a class
// holds the object that the abstract operations work on; reading it from anything else throws a TypeError.

import {
  apply, asyncIterator, AsyncIteratorPrototype, bare, core, defineProperty, finish, illegalConstructor,
  isObject, native, requireArguments, required, SafePromise, SafeRangeError, SafeTypeError, setPrototypeOf, toBoolean, toCallback,
  toDictionary, toEnforced, toEnum, toStringTag, getOwnPropertyDescriptor,
} from "./core.js";
import { once } from "../../once.js";
import { makeByteInterfaces } from "./byte-interfaces.js";
import { readableFrom } from "./from.js";
import { pipe } from "./pipe.js";
import { markHandled, promising, react, rejectedWith, resolvedWith } from "./promises.js";
import {
  acquireDefaultReader, attachReader, cancelStream, isLocked, Readable, readDefault, Reader, releaseReader,
} from "./readable.js";
import { ByteController } from "./readable-bytes.js";
import { DefaultController } from "./readable-default.js";
import { highWaterMarkOf, sizeOf, toStrategy } from "./strategies.js";
import { teeBytes, teeDefault } from "./tee.js";
import { attached, cancelByReader, maxSafe, settleRead, zeroLength } from "./reading.js";
import { nothing, promised } from "./transform.js";
import { isWritableLocked } from "./writable.js";

const toObject = (value) => {
  if (!isObject(value)) throw new SafeTypeError("The argument is not an object.");
  return value;
};
const toBytesType = (value) => toEnum(value, ["bytes"], "The source's type");
const sourceMembers = () => [
  ["autoAllocateChunkSize", (value, what) => toEnforced(value, 0, maxSafe, what)],
  ["cancel", toCallback], ["pull", toCallback], ["start", toCallback], ["type", toBytesType],
];
const iteratorMembers = () => [["preventCancel", toBoolean, false]];
const readerMembers = () => [["mode", (value) => toEnum(value, ["byob"], "The reader's mode")]];

const endOfIteration = { __proto__: null };

export function makeReadableInterfaces(writables) {
  const toAbortSignal = (value) => {
    core.need("abort").isAborted(value); // throws on anything else
    return value;
  };
  const pipeMembers = () => [
    ["preventAbort", toBoolean, false], ["preventCancel", toBoolean, false], ["preventClose", toBoolean, false], ["signal", toAbortSignal],
  ];

  let readableOf;
  const bytes = once(() => makeByteInterfaces(readableOf));
  const makeRequest = (slots) => bytes().makeRequest(slots);

  class ReadableStreamDefaultController {
    #slots;
    constructor(slots) {
      if (arguments.length !== 2 || arguments[1] !== bare) throw illegalConstructor();
      this.#slots = slots;
    }
    get desiredSize() {
      return this.#slots.desiredSize();
    }
    close() {
      this.#slots.closeChecked();
    }
    enqueue(chunk = undefined) {
      this.#slots.enqueueChecked(chunk);
    }
    error(error = undefined) {
      this.#slots.error(error);
    }
  }
  zeroLength(ReadableStreamDefaultController);

  class ReadableStreamDefaultReader {
    #slots;
    constructor(stream) {
      if (arguments.length === 2 && arguments[1] === bare) {
        this.#slots = stream;
        stream.object = this;
        return;
      }
      requireArguments("ReadableStreamDefaultReader", arguments.length, 1);
      const slots = attachReader(new Reader(false), readableOf(stream));
      slots.object = this;
      this.#slots = slots;
    }
    get closed() {
      return promising(() => this.#slots.closed.promise);
    }
    cancel(reason = undefined) {
      return promising(() => cancelByReader(this.#slots, reason));
    }
    read() {
      return promising(() => {
        const slots = this.#slots;
        attached(slots);
        return new SafePromise((resolve, reject) => readDefault(slots, settleRead(resolve, reject)));
      });
    }
    releaseLock() {
      const slots = this.#slots;
      if (slots.stream !== undefined) releaseReader(slots);
    }
  }

  class ReadableStream {
    #slots;
    static {
      readableOf = (value) => {
        if (!isObject(value) || !(#slots in value)) throw new SafeTypeError("The value is not a ReadableStream.");
        return value.#slots;
      };
    }
    constructor(underlyingSource = undefined, strategy = undefined) {
      native.brand(this);
      if (strategy === bare) {
        this.#slots = underlyingSource;
        underlyingSource.object = this;
        return;
      }
      const source = underlyingSource === undefined ? null : toObject(underlyingSource);
      const converted = toStrategy(strategy);
      const dictionary = toDictionary(source, sourceMembers(), "The underlying source");
      this.#slots = new Readable();
      this.#slots.object = this;
      if (dictionary.type === "bytes") setUpBytes(this.#slots, source, dictionary, converted);
      else setUpDefault(this.#slots, source, dictionary, converted);
    }
    static from(asyncIterable) {
      requireArguments("from' on 'ReadableStream", arguments.length, 1);
      return readableFrom(makeReadable, asyncIterable).object;
    }
    get locked() {
      return isLocked(this.#slots);
    }
    cancel(reason = undefined) {
      return promising(() => {
        const slots = this.#slots;
        if (isLocked(slots)) return rejectedWith(new SafeTypeError("The stream is locked to a reader."));
        return cancelStream(slots, reason);
      });
    }
    getReader(options = undefined) {
      const slots = this.#slots;
      const { mode } = toDictionary(options, readerMembers(), "The options");
      if (mode === undefined) return new ReadableStreamDefaultReader(acquireDefaultReader(slots), bare);
      return bytes().acquireReader(slots);
    }
    pipeThrough(transform, options = undefined) {
      const slots = this.#slots;
      requireArguments("pipeThrough' on 'ReadableStream", arguments.length, 1);
      const pair = toDictionary(transform, [
        ["readable", (value) => (readableOf(value), value), required],
        ["writable", (value) => (writables.writableOf(value), value), required],
      ], "The transform");
      const converted = toDictionary(options, pipeMembers(), "The options");
      if (isLocked(slots)) throw new SafeTypeError("The stream is locked to a reader.");
      const writable = writables.writableOf(pair.writable);
      if (isWritableLocked(writable)) throw new SafeTypeError("The transform's writable side is locked to a writer.");
      markHandled(pipe(slots, writable, converted));
      return pair.readable;
    }
    pipeTo(destination, options = undefined) {
      const given = arguments.length;
      return promising(() => {
        const slots = this.#slots;
        requireArguments("pipeTo' on 'ReadableStream", given, 1);
        const writable = writables.writableOf(destination);
        const converted = toDictionary(options, pipeMembers(), "The options");
        if (isLocked(slots)) throw new SafeTypeError("The stream is locked to a reader.");
        if (isWritableLocked(writable)) throw new SafeTypeError("The destination is locked to a writer.");
        return pipe(slots, writable, converted);
      });
    }
    tee() {
      const branches = tee(this.#slots);
      return [branches[0].object, branches[1].object];
    }
    values(options = undefined) {
      const slots = this.#slots;
      const { preventCancel } = toDictionary(options, iteratorMembers(), "The options");
      return new StreamIterator(acquireDefaultReader(slots), preventCancel);
    }
  }

  function tee(slots, clone) {
    return slots.controller.isBytes ? teeBytes(makeReadable, makeRequest, slots) : teeDefault(makeReadable, slots, clone);
  }

  function makeReadable(slots) {
    new ReadableStream(slots, bare);
    return slots;
  }

  // Web IDL, 3.7.10.3: the asynchronous iterator of an interface; one step runs at a time.
  class StreamIterator {
    #reader;
    #preventCancel;
    #ongoing = undefined;
    #finished = false;
    constructor(reader, preventCancel) {
      this.#reader = reader;
      this.#preventCancel = preventCancel;
    }
    next() {
      return promising(() => {
        const steps = () => this.#next();
        return (this.#ongoing = this.#ongoing === undefined ? steps() : react(this.#ongoing, steps, steps));
      });
    }
    return(value) {
      return promising(() => {
        const steps = () => this.#return(value);
        const ongoing = (this.#ongoing = this.#ongoing === undefined ? steps() : react(this.#ongoing, steps, steps));
        return react(ongoing, () => ({ value, done: true }));
      });
    }
    #next() {
      if (this.#finished) return resolvedWith({ value: undefined, done: true });
      const reader = this.#reader;
      const read = new SafePromise((resolve, reject) => readDefault(reader, {
        __proto__: null,
        chunk: resolve,
        close() {
          releaseReader(reader);
          resolve(endOfIteration);
        },
        error(error) {
          releaseReader(reader);
          reject(error);
        },
      }));
      return react(read, (value) => {
        this.#ongoing = undefined;
        if (value !== endOfIteration) return { value, done: false };
        this.#finished = true;
        return { value: undefined, done: true };
      }, (error) => {
        this.#ongoing = undefined;
        this.#finished = true;
        throw error;
      });
    }
    #return(value) {
      if (this.#finished) return resolvedWith({ value, done: true });
      this.#finished = true;
      const reader = this.#reader;
      if (this.#preventCancel) {
        releaseReader(reader);
        return resolvedWith(undefined);
      }
      const result = cancelStream(reader.stream, value);
      releaseReader(reader);
      return result;
    }
  }
  const iterator = StreamIterator.prototype;
  delete iterator.constructor;
  setPrototypeOf(iterator, AsyncIteratorPrototype);
  enumerate(iterator, "next");
  enumerate(iterator, "return");
  defineProperty(iterator, toStringTag, { __proto__: null, value: "ReadableStream AsyncIterator", configurable: true });

  // ---- set up from what the program gave

  function setUpDefault(slots, source, dictionary, strategy) {
    const size = sizeOf(strategy);
    const mark = highWaterMarkOf(strategy, 1);
    const controller = new DefaultController(slots, undefined, mark);
    const object = (controller.object = new ReadableStreamDefaultController(controller, bare));
    controller.algorithms = { __proto__: null, ...sourceAlgorithms(source, dictionary, object), size };
    controller.begin(dictionary.start && (() => apply(dictionary.start, source, [object])));
  }

  function setUpBytes(slots, source, dictionary, strategy) {
    if (strategy.size !== undefined) throw new SafeRangeError("A byte stream's strategy must have no size function.");
    const mark = highWaterMarkOf(strategy, 0);
    const chunkSize = dictionary.autoAllocateChunkSize;
    if (chunkSize === 0) throw new SafeTypeError("The autoAllocateChunkSize must be positive.");
    const controller = new ByteController(slots, undefined, mark, chunkSize, makeRequest);
    const object = (controller.object = bytes().makeController(controller));
    controller.algorithms = sourceAlgorithms(source, dictionary, object);
    controller.begin(dictionary.start && (() => apply(dictionary.start, source, [object])));
  }

  function sourceAlgorithms(source, { pull, cancel }, object) {
    return {
      __proto__: null,
      pull: pull === undefined ? nothing : () => promised(() => apply(pull, source, [object])),
      cancel: cancel === undefined ? nothing : (reason) => promised(() => apply(cancel, source, [reason])),
    };
  }

  const interfaces = { __proto__: null, ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController };
  for (const name in interfaces) finish(interfaces[name], { __proto__: null, name });
  defineProperty(ReadableStream.prototype, asyncIterator, {
    __proto__: null, value: ReadableStream.prototype.values, writable: true, enumerable: false, configurable: true,
  });
  return { __proto__: null, interfaces, bytes, makeReadable, makeRequest, readableOf, tee };
}

function enumerate(object, key) {
  defineProperty(object, key, { __proto__: null, ...getOwnPropertyDescriptor(object, key), enumerable: true });
}

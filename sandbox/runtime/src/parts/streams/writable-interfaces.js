// The interfaces of writable streams (Streams, 5: https://streams.spec.whatwg.org/#ws).

import {
  apply, bare, defineProperty, finish, illegalConstructor, isObject, native, requireArguments, SafeRangeError, SafeTypeError,
  toCallback, toDictionary,
} from "./core.js";
import { promising, rejectedWith } from "./promises.js";
import { highWaterMarkOf, sizeOf, toStrategy } from "./strategies.js";
import { nothing, promised } from "./transform.js";
import {
  abortWritable, acquireWriter, attachWriter, closeQueuedOrInFlight, closeWritable, desiredSizeOf, isWritableLocked, releaseWriter,
  Writable, WritableController, write, Writer,
} from "./writable.js";

const sinkMembers = () => [
  ["abort", toCallback], ["close", toCallback], ["start", toCallback], ["type", (value) => value], ["write", toCallback],
];

const closing = () => new SafeTypeError("The stream is closing or closed.");

export function makeWritableInterfaces() {
  let writableOf;

  class WritableStreamDefaultController {
    #slots;
    constructor(slots) {
      if (arguments.length !== 2 || arguments[1] !== bare) throw illegalConstructor();
      this.#slots = slots;
    }
    get signal() {
      return this.#slots.getSignal();
    }
    error(error = undefined) {
      this.#slots.errorIfNeeded(error);
    }
  }
  defineProperty(WritableStreamDefaultController, "length", { __proto__: null, value: 0, configurable: true });

  class WritableStreamDefaultWriter {
    #slots;
    constructor(stream) {
      if (arguments.length === 2 && arguments[1] === bare) {
        this.#slots = stream;
        stream.object = this;
        return;
      }
      requireArguments("WritableStreamDefaultWriter", arguments.length, 1);
      const slots = attachWriter(new Writer(), writableOf(stream));
      slots.object = this;
      this.#slots = slots;
    }
    get closed() {
      return promising(() => this.#slots.closed.promise);
    }
    get desiredSize() {
      const slots = this.#slots;
      attached(slots);
      return desiredSizeOf(slots);
    }
    get ready() {
      return promising(() => this.#slots.ready.promise);
    }
    abort(reason = undefined) {
      return promising(() => {
        const slots = this.#slots;
        attached(slots);
        return abortWritable(slots.stream, reason);
      });
    }
    close() {
      return promising(() => {
        const slots = this.#slots;
        attached(slots);
        return closeQueuedOrInFlight(slots.stream) ? rejectedWith(closing()) : closeWritable(slots.stream);
      });
    }
    releaseLock() {
      const slots = this.#slots;
      if (slots.stream !== undefined) releaseWriter(slots);
    }
    write(chunk = undefined) {
      return promising(() => {
        const slots = this.#slots;
        attached(slots);
        return write(slots, chunk);
      });
    }
  }

  class WritableStream {
    #slots;
    static {
      writableOf = (value) => {
        if (!isObject(value) || !(#slots in value)) throw new SafeTypeError("The value is not a WritableStream.");
        return value.#slots;
      };
    }
    constructor(underlyingSink = undefined, strategy = undefined) {
      native.brand(this);
      if (strategy === bare) {
        this.#slots = underlyingSink;
        underlyingSink.object = this;
        return;
      }
      if (underlyingSink !== undefined && !isObject(underlyingSink)) throw new SafeTypeError("The underlying sink is not an object.");
      const converted = toStrategy(strategy);
      const dictionary = toDictionary(underlyingSink, sinkMembers(), "The underlying sink");
      if (dictionary.type !== undefined) throw new SafeRangeError("The underlying sink's type must be undefined.");
      this.#slots = new Writable();
      this.#slots.object = this;
      setUp(this.#slots, underlyingSink, dictionary, converted);
    }
    get locked() {
      return isWritableLocked(this.#slots);
    }
    abort(reason = undefined) {
      return promising(() => {
        const slots = this.#slots;
        if (isWritableLocked(slots)) throw new SafeTypeError("The stream is locked to a writer.");
        return abortWritable(slots, reason);
      });
    }
    close() {
      return promising(() => {
        const slots = this.#slots;
        if (isWritableLocked(slots)) throw new SafeTypeError("The stream is locked to a writer.");
        return closeQueuedOrInFlight(slots) ? rejectedWith(closing()) : closeWritable(slots);
      });
    }
    getWriter() {
      return new WritableStreamDefaultWriter(acquireWriter(this.#slots), bare);
    }
  }

  function setUp(slots, sink, { start, write: onWrite, close, abort }, strategy) {
    const size = sizeOf(strategy);
    const mark = highWaterMarkOf(strategy, 1);
    const controller = new WritableController(slots, undefined, mark);
    const object = (controller.object = new WritableStreamDefaultController(controller, bare));
    controller.algorithms = {
      __proto__: null,
      write: onWrite === undefined ? nothing : (chunk) => promised(() => apply(onWrite, sink, [chunk, object])),
      close: close === undefined ? nothing : () => promised(() => apply(close, sink, [])),
      abort: abort === undefined ? nothing : (reason) => promised(() => apply(abort, sink, [reason])),
      size,
    };
    controller.begin(start && (() => apply(start, sink, [object])));
  }

  function attached(slots) {
    if (slots.stream === undefined) throw new SafeTypeError("The writer was released.");
  }

  function makeWritable(slots) {
    new WritableStream(slots, bare);
    return slots;
  }

  const interfaces = { __proto__: null, WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController };
  for (const name in interfaces) finish(interfaces[name], { __proto__: null, name });
  return { __proto__: null, interfaces, makeWritable, writableOf };
}

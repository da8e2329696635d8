// What other parts use of streams (Streams, 9: "Using streams in other specifications",
// https://streams.spec.whatwg.org/#other-specs). Streams are given and returned as the program sees them.

import { Bytes, SafeTypeError, typedArrayByteLength, typedArraySet, typedArrayTag, list, push } from "./core.js";
import { markHandled, react, resolvedWith } from "./promises.js";
import { acquireDefaultReader, cancelStream, isLocked, readDefault, releaseReader } from "./readable.js";
import { createReadable } from "./readable-default.js";
import { createReadableBytes } from "./readable-bytes.js";
import { pipe } from "./pipe.js";
import { nothing, promised, Transform } from "./transform.js";
import { createWritable } from "./writable.js";

export function makeExports({ makeReadable, makeRequest, readableOf, tee }, { makeWritable, writableOf }, { makeTransform, transformOf }) {
  const call = (steps) => (steps === undefined ? nothing : (value) => promised(steps, value));

  /** {stream, enqueue, close, error, desiredSize} of a new ReadableStream. pull() and cancel(reason) may return promises. */
  function setUpReadable({ pull, cancel, highWaterMark = 1, size }) {
    const { controller, object } = createReadable(makeReadable, undefined, call(pull), call(cancel), highWaterMark, size);
    return handle(controller, object);
  }

  /** The same of a byte stream. enqueue takes a Uint8Array, whose buffer it takes over. */
  function setUpReadableBytes({ pull, cancel, highWaterMark = 0 }) {
    const { controller, object } = createReadableBytes(makeReadable, makeRequest, undefined, call(pull), call(cancel), highWaterMark);
    return handle(controller, object);
  }

  function handle(controller, stream) {
    return {
      __proto__: null,
      stream,
      enqueue: (chunk) => controller.enqueue(chunk),
      close() {
        controller.close();
        // A BYOB read that waits ends with the stream.
        if (controller.isBytes && controller.pending.length > 0) controller.respond(0);
      },
      error: (error) => controller.error(error),
      desiredSize: () => controller.desiredSize(),
    };
  }

  /** A new WritableStream. */
  function setUpWritable({ write, close, abort, highWaterMark = 1, size }) {
    const algorithms = { write: call(write), close: call(close), abort: call(abort) };
    return createWritable(makeWritable, undefined, algorithms, highWaterMark, size).object;
  }

  /** {readable, writable, stream, enqueue, error, terminate} of a new TransformStream; transform(chunk), flush() and cancel(reason). */
  function setUpTransform({ transform, flush, cancel }) {
    const slots = new Transform(makeReadable, makeWritable, resolvedWith(undefined), { __proto__: null, readable: 0, writable: 1 }, { __proto__: null });
    slots.algorithms = { __proto__: null, transform: call(transform), flush: call(flush), cancel: call(cancel) };
    return {
      __proto__: null,
      readable: slots.readable.object,
      writable: slots.writable.object,
      get stream() {
        return slots.object ?? makeTransform(slots);
      },
      enqueue: (chunk) => slots.enqueue(chunk),
      error: (error) => slots.error(error),
      terminate: () => slots.terminate(),
    };
  }

  /** Locks a stream: {read({chunk, close, error}), cancel(reason), release()}. Throws a TypeError if it is locked. */
  function acquireReader(stream) {
    const reader = acquireDefaultReader(readableOf(stream));
    return {
      __proto__: null,
      read: (request) => readDefault(reader, request),
      cancel: (reason) => cancelStream(reader.stream, reason),
      release: () => releaseReader(reader),
    };
  }

  /** Reads all of a stream of Uint8Arrays: success(list of them, count of bytes) or failure(error). */
  function readAllChunks(reader, success, failure) {
    const chunks = list();
    let total = 0;
    let again = false;
    let inside = false;
    const request = {
      __proto__: null,
      chunk(chunk) {
        if (typedArrayOf(chunk) !== "Uint8Array") {
          const error = new SafeTypeError("The stream gave a chunk that is not a Uint8Array.");
          markHandled(reader.cancel(error));
          failure(error);
          return;
        }
        push(chunks, chunk);
        total += typedArrayByteLength(chunk);
        if (inside) again = true;
        else loop();
      },
      close: () => success(chunks, total),
      error: failure,
    };
    // Chunks that are there already come at once: a loop, so that the stack does not grow with them.
    function loop() {
      inside = true;
      do {
        again = false;
        reader.read(request);
      } while (again);
      inside = false;
    }
    loop();
  }
  const typedArrayOf = (value) => (typeof value === "object" && value !== null ? typedArrayTag(value) : undefined);

  /** ReadableStreamDefaultReader's "read all bytes": success(Uint8Array) or failure(error). */
  function readAllBytes(reader, success, failure) {
    readAllChunks(reader, (chunks, total) => {
      let bytes;
      try {
        bytes = concatenate(chunks, total);
      } catch (error) {
        failure(error);
        return;
      }
      success(bytes);
    }, failure);
  }
  function concatenate(chunks, total) {
    const bytes = new Bytes(total);
    let at = 0;
    for (let i = 0; i < chunks.length; i++) {
      typedArraySet(bytes, chunks[i], at);
      at += typedArrayByteLength(chunks[i]);
    }
    return bytes;
  }

  return {
    __proto__: null,
    setUpReadable, setUpReadableBytes, setUpWritable, setUpTransform, acquireReader, readAllBytes, readableOf, writableOf, transformOf,
    teeStream(stream, clone) {
      const branches = tee(readableOf(stream), clone);
      return [branches[0].object, branches[1].object];
    },
    pipeStream: (source, dest, options = { __proto__: null }) => pipe(readableOf(source), writableOf(dest), options),
    cancelReadable: (stream, reason) => cancelStream(readableOf(stream), reason),
    isReadableLocked: (stream) => isLocked(readableOf(stream)),
    isDisturbed: (stream) => readableOf(stream).disturbed,
    stateOfReadable: (stream) => readableOf(stream).state,
    onFulfilled: react,
  };
}

// The interfaces of readable byte streams (Streams, 4.5, 4.7 and 4.8: https://streams.spec.whatwg.org/#byob-reader-class), made
// when a program asks for one: most streams are of chunks. See readable-interfaces.js.

import {
  bare, bufferByteLength, bufferDetached, finish, illegalConstructor, requireArguments, SafePromise, SafeRangeError, SafeTypeError, toDictionary, toEnforced,
} from "./core.js";
import { promising } from "./promises.js";
import { acquireByobReader, attachReader, readByob, Reader, releaseReader } from "./readable.js";
import { attached, cancelByReader, maxSafe, settleRead, zeroLength } from "./reading.js";
import { describe, toView } from "./views.js";

const readMembers = () => [["min", (value, what) => toEnforced(value, 0, maxSafe, what), 1]];

export function makeByteInterfaces(readableOf) {
  class ReadableStreamBYOBRequest {
    #slots;
    constructor(slots) {
      if (arguments.length !== 2 || arguments[1] !== bare) throw illegalConstructor();
      this.#slots = slots;
    }
    get view() {
      return this.#slots.view;
    }
    respond(bytesWritten) {
      const slots = this.#slots;
      requireArguments("respond' on 'ReadableStreamBYOBRequest", arguments.length, 1);
      const count = toEnforced(bytesWritten, 0, maxSafe, "The number of bytes");
      const controller = controllerOfRequest(slots);
      if (bufferDetached(describe(slots.view).buffer)) throw new SafeTypeError("The view's buffer is detached.");
      controller.respond(count);
    }
    respondWithNewView(view) {
      const slots = this.#slots;
      requireArguments("respondWithNewView' on 'ReadableStreamBYOBRequest", arguments.length, 1);
      toView(view);
      const controller = controllerOfRequest(slots);
      if (bufferDetached(describe(view).buffer)) throw new SafeTypeError("The view's buffer is detached.");
      controller.respondWithView(view);
    }
  }
  zeroLength(ReadableStreamBYOBRequest);
  const makeRequest = (slots) => new ReadableStreamBYOBRequest(slots, bare);

  function controllerOfRequest(slots) {
    if (slots.controller === undefined) throw new SafeTypeError("The request was answered already.");
    return slots.controller;
  }

  class ReadableByteStreamController {
    #slots;
    constructor(slots) {
      if (arguments.length !== 2 || arguments[1] !== bare) throw illegalConstructor();
      this.#slots = slots;
    }
    get byobRequest() {
      const request = this.#slots.getRequest();
      return request === null ? null : request.object;
    }
    get desiredSize() {
      return this.#slots.desiredSize();
    }
    close() {
      this.#slots.closeChecked();
    }
    enqueue(chunk) {
      const slots = this.#slots;
      requireArguments("enqueue' on 'ReadableByteStreamController", arguments.length, 1);
      slots.enqueueChecked(toView(chunk));
    }
    error(error = undefined) {
      this.#slots.error(error);
    }
  }
  zeroLength(ReadableByteStreamController);

  class ReadableStreamBYOBReader {
    #slots;
    constructor(stream) {
      if (arguments.length === 2 && arguments[1] === bare) {
        this.#slots = stream;
        stream.object = this;
        return;
      }
      requireArguments("ReadableStreamBYOBReader", arguments.length, 1);
      const slots = attachReader(new Reader(true), readableOf(stream));
      slots.object = this;
      this.#slots = slots;
    }
    get closed() {
      return promising(() => this.#slots.closed.promise);
    }
    cancel(reason = undefined) {
      return promising(() => cancelByReader(this.#slots, reason));
    }
    read(view, options = undefined) {
      const given = arguments.length;
      return promising(() => {
        const slots = this.#slots;
        requireArguments("read' on 'ReadableStreamBYOBReader", given, 1);
        toView(view);
        const { min } = toDictionary(options, readMembers(), "The options");
        checkReadView(view, min);
        attached(slots);
        return new SafePromise((resolve, reject) => readByob(slots, view, min, settleRead(resolve, reject)));
      });
    }
    releaseLock() {
      const slots = this.#slots;
      if (slots.stream !== undefined) releaseReader(slots);
    }
  }

  function checkReadView(view, min) {
    const { buffer, byteLength, elementSize } = describe(view);
    if (byteLength === 0) throw new SafeTypeError("The view is empty.");
    if (bufferByteLength(buffer) === 0) throw new SafeTypeError("The view's buffer is empty.");
    if (bufferDetached(buffer)) throw new SafeTypeError("The view's buffer is detached.");
    if (min === 0) throw new SafeTypeError("The option min must be positive.");
    if (min > byteLength / elementSize) throw new SafeRangeError("The option min is larger than the view.");
  }

  const interfaces = { __proto__: null, ReadableStreamBYOBReader, ReadableByteStreamController, ReadableStreamBYOBRequest };
  for (const name in interfaces) finish(interfaces[name], { __proto__: null, name });
  return {
    __proto__: null,
    interfaces,
    makeRequest,
    makeController: (slots) => new ReadableByteStreamController(slots, bare),
    acquireReader: (slots) => new ReadableStreamBYOBReader(acquireByobReader(slots), bare),
  };
}

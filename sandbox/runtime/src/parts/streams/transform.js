// TransformStream without its interface (Streams, 6.3 and 6.4: https://streams.spec.whatwg.org/#ts-abstract-ops).

import { SafeTypeError } from "./core.js";
import { Deferred, react, rejectedWith, resolvedWith } from "./promises.js";
import { createReadable } from "./readable-default.js";
import { createWritable } from "./writable.js";

/** The stream and its controller in one: [[algorithms]] are {transform, flush, cancel}, each returning a promise. */
export class Transform {
  readable = undefined;
  writable = undefined;
  backpressure = undefined;
  backpressureChange = undefined; // Deferred
  algorithms = undefined; // undefined once they are cleared
  finish = undefined; // Deferred
  object = undefined;
  controllerObject = undefined;

  constructor(makeReadable, makeWritable, startPromise, marks, sizes) {
    const start = () => startPromise;
    this.writable = createWritable(makeWritable, start, {
      write: (chunk) => this.#sinkWrite(chunk),
      abort: (reason) => this.#sinkAbort(reason),
      close: () => this.#sinkClose(),
    }, marks.writable, sizes.writable);
    this.readable = createReadable(makeReadable, start, () => this.#sourcePull(), (reason) => this.#sourceCancel(reason), marks.readable, sizes.readable);
    this.setBackpressure(true);
  }

  setBackpressure(backpressure) {
    if (this.backpressureChange !== undefined) this.backpressureChange.resolve(undefined);
    this.backpressureChange = new Deferred();
    this.backpressure = backpressure;
  }

  /** TransformStreamError. */
  error(error) {
    this.readable.controller.error(error);
    this.errorWritableAndUnblock(error);
  }

  errorWritableAndUnblock(error) {
    this.algorithms = undefined;
    this.writable.controller.errorIfNeeded(error);
    this.#unblock();
  }

  #unblock() {
    if (this.backpressure) this.setBackpressure(false);
  }

  // ---- the controller

  desiredSize() {
    return this.readable.controller.desiredSize();
  }

  enqueue(chunk) {
    const { controller } = this.readable;
    if (!controller.canCloseOrEnqueue()) throw new SafeTypeError("The readable side takes no chunk: it is closed or errored.");
    try {
      controller.enqueue(chunk);
    } catch (error) {
      this.errorWritableAndUnblock(error);
      throw this.readable.storedError;
    }
    const backpressure = controller.hasBackpressure();
    if (backpressure !== this.backpressure) this.setBackpressure(true);
  }

  terminate() {
    this.readable.controller.close();
    this.errorWritableAndUnblock(new SafeTypeError("The transform stream was terminated."));
  }

  // Calls an algorithm for the last time. The transformer may have errored the stream meanwhile and has none then.
  #last(name, argument) {
    const { algorithms } = this;
    this.algorithms = undefined;
    return algorithms === undefined ? nothing() : algorithms[name](argument);
  }

  #perform(chunk) {
    if (this.algorithms === undefined) return nothing(); // being cancelled
    return react(this.algorithms.transform(chunk), undefined, (error) => {
      this.error(error);
      throw error;
    });
  }

  // ---- the sink

  #sinkWrite(chunk) {
    if (!this.backpressure) return this.#perform(chunk);
    return react(this.backpressureChange.promise, () => {
      const { writable } = this;
      if (writable.state === "erroring") throw writable.storedError;
      return this.#perform(chunk);
    });
  }

  #sinkAbort(reason) {
    if (this.finish !== undefined) return this.finish.promise;
    const { readable } = this;
    const finish = (this.finish = new Deferred());
    const cancelled = this.#last("cancel", reason);
    react(cancelled, () => {
      if (readable.state === "errored") {
        finish.reject(readable.storedError);
      } else {
        readable.controller.error(reason);
        finish.resolve(undefined);
      }
    }, (error) => {
      readable.controller.error(error);
      finish.reject(error);
    });
    return finish.promise;
  }

  #sinkClose() {
    if (this.finish !== undefined) return this.finish.promise;
    const { readable } = this;
    const finish = (this.finish = new Deferred());
    const flushed = this.#last("flush");
    react(flushed, () => {
      if (readable.state === "errored") {
        finish.reject(readable.storedError);
      } else {
        readable.controller.close();
        finish.resolve(undefined);
      }
    }, (error) => {
      readable.controller.error(error);
      finish.reject(error);
    });
    return finish.promise;
  }

  // ---- the source

  #sourcePull() {
    this.setBackpressure(false);
    return this.backpressureChange.promise;
  }

  #sourceCancel(reason) {
    if (this.finish !== undefined) return this.finish.promise;
    const { writable } = this;
    const finish = (this.finish = new Deferred());
    const cancelled = this.#last("cancel", reason);
    react(cancelled, () => {
      if (writable.state === "errored") {
        finish.reject(writable.storedError);
      } else {
        writable.controller.errorIfNeeded(reason);
        this.#unblock();
        finish.resolve(undefined);
      }
    }, (error) => {
      writable.controller.errorIfNeeded(error);
      this.#unblock();
      finish.reject(error);
    });
    return finish.promise;
  }
}

export const nothing = () => resolvedWith(undefined);

/** Makes a promise of what a function returns or throws. */
export function promised(steps, value) {
  try {
    return resolvedWith(steps(value));
  } catch (error) {
    return rejectedWith(error);
  }
}

// WritableStream without its interface: the slots and abstract operations (Streams, 5.3 to 5.5:
// https://streams.spec.whatwg.org/#ws-abstract-ops).

import { core, SafeTypeError } from "./core.js";
import { Deferred, markHandled, react, rejectedDeferred, rejectedWith, resolvedDeferred, resolvedWith } from "./promises.js";
import { Queue, SizedQueue } from "./queue.js";

export class Writable {
  state = "writable";
  storedError = undefined;
  writer = undefined;
  controller = undefined;
  requests = new Queue(); // Deferreds of writes
  inFlightWrite = undefined;
  closeRequest = undefined;
  inFlightClose = undefined;
  pendingAbort = undefined; // {promise: Deferred, reason, wasErroring}
  backpressure = false;
  object = undefined;
}

export class Writer {
  stream = undefined;
  ready = undefined; // Deferred
  closed = undefined; // Deferred
  object = undefined;
}

export const isWritableLocked = (stream) => stream.writer !== undefined;
export const closeQueuedOrInFlight = (stream) => stream.closeRequest !== undefined || stream.inFlightClose !== undefined;

/** SetUpWritableStreamDefaultWriter. */
export function attachWriter(writer, stream) {
  if (isWritableLocked(stream)) throw new SafeTypeError("The stream is locked to a writer.");
  writer.stream = stream;
  stream.writer = writer;
  const { state, storedError } = stream;
  if (state === "writable") {
    writer.ready = !closeQueuedOrInFlight(stream) && stream.backpressure ? new Deferred() : resolvedDeferred(undefined);
    writer.closed = new Deferred();
  } else if (state === "erroring") {
    writer.ready = rejectedDeferred(storedError);
    writer.closed = new Deferred();
  } else if (state === "closed") {
    writer.ready = resolvedDeferred(undefined);
    writer.closed = resolvedDeferred(undefined);
  } else {
    writer.ready = rejectedDeferred(storedError);
    writer.closed = rejectedDeferred(storedError);
  }
  return writer;
}

export const acquireWriter = (stream) => attachWriter(new Writer(), stream);

/** WritableStreamAbort. */
export function abortWritable(stream, reason) {
  if (stream.state === "closed" || stream.state === "errored") return resolvedWith(undefined);
  stream.controller.signalAbort(reason);
  const { state } = stream; // the signal's listeners may have changed it
  if (state === "closed" || state === "errored") return resolvedWith(undefined);
  if (stream.pendingAbort !== undefined) return stream.pendingAbort.promise.promise;
  const wasErroring = state === "erroring";
  const promise = new Deferred();
  stream.pendingAbort = { __proto__: null, promise, reason: wasErroring ? undefined : reason, wasErroring };
  if (!wasErroring) startErroring(stream, reason);
  return promise.promise;
}

/** WritableStreamClose. */
export function closeWritable(stream) {
  const { state, writer } = stream;
  if (state === "closed" || state === "errored") {
    return rejectedWith(new SafeTypeError(`The stream is ${state} and cannot be closed.`));
  }
  const request = new Deferred();
  stream.closeRequest = request;
  if (writer !== undefined && stream.backpressure && state === "writable") writer.ready.resolve(undefined);
  stream.controller.close();
  return request.promise;
}

/** WritableStreamDealWithRejection. */
function dealWithRejection(stream, error) {
  if (stream.state === "writable") startErroring(stream, error);
  else finishErroring(stream);
}

/** WritableStreamStartErroring. */
export function startErroring(stream, reason) {
  const { controller, writer } = stream;
  stream.state = "erroring";
  stream.storedError = reason;
  if (writer !== undefined) ensureReadyRejected(writer, reason);
  if (!hasInFlight(stream) && controller.started) finishErroring(stream);
}

const hasInFlight = (stream) => stream.inFlightWrite !== undefined || stream.inFlightClose !== undefined;

/** WritableStreamFinishErroring. */
function finishErroring(stream) {
  stream.state = "errored";
  stream.controller.errorSteps();
  const { storedError, requests } = stream;
  stream.requests = new Queue();
  while (requests.length > 0) requests.shift().reject(storedError);
  const pending = stream.pendingAbort;
  if (pending === undefined) {
    rejectCloseAndClosed(stream);
    return;
  }
  stream.pendingAbort = undefined;
  if (pending.wasErroring) {
    pending.promise.reject(storedError);
    rejectCloseAndClosed(stream);
    return;
  }
  react(stream.controller.abortSteps(pending.reason), () => {
    pending.promise.resolve(undefined);
    rejectCloseAndClosed(stream);
  }, (error) => {
    pending.promise.reject(error);
    rejectCloseAndClosed(stream);
  });
}

/** WritableStreamRejectCloseAndClosedPromiseIfNeeded. */
function rejectCloseAndClosed(stream) {
  const { writer, storedError } = stream;
  if (stream.closeRequest !== undefined) {
    stream.closeRequest.reject(storedError);
    stream.closeRequest = undefined;
  }
  if (writer === undefined) return;
  writer.closed.reject(storedError);
  markHandled(writer.closed.promise);
}

function finishWrite(stream) {
  stream.inFlightWrite.resolve(undefined);
  stream.inFlightWrite = undefined;
}

function finishWriteWithError(stream, error) {
  stream.inFlightWrite.reject(error);
  stream.inFlightWrite = undefined;
  dealWithRejection(stream, error);
}

function finishClose(stream) {
  stream.inFlightClose.resolve(undefined);
  stream.inFlightClose = undefined;
  if (stream.state === "erroring") {
    stream.storedError = undefined;
    if (stream.pendingAbort !== undefined) {
      stream.pendingAbort.promise.resolve(undefined);
      stream.pendingAbort = undefined;
    }
  }
  stream.state = "closed";
  if (stream.writer !== undefined) stream.writer.closed.resolve(undefined);
}

function finishCloseWithError(stream, error) {
  stream.inFlightClose.reject(error);
  stream.inFlightClose = undefined;
  if (stream.pendingAbort !== undefined) {
    stream.pendingAbort.promise.reject(error);
    stream.pendingAbort = undefined;
  }
  dealWithRejection(stream, error);
}

/** WritableStreamUpdateBackpressure. */
function updateBackpressure(stream, backpressure) {
  const { writer } = stream;
  if (writer !== undefined && backpressure !== stream.backpressure) {
    if (backpressure) writer.ready = new Deferred();
    else writer.ready.resolve(undefined);
  }
  stream.backpressure = backpressure;
}

// ---- writers

/** WritableStreamDefaultWriterEnsureReadyPromiseRejected and …ClosedPromiseRejected. */
function ensureReadyRejected(writer, error) {
  if (writer.ready.settled) writer.ready = rejectedDeferred(error);
  else writer.ready.reject(error);
  markHandled(writer.ready.promise);
}
function ensureClosedRejected(writer, error) {
  if (writer.closed.settled) writer.closed = rejectedDeferred(error);
  else writer.closed.reject(error);
  markHandled(writer.closed.promise);
}

/** WritableStreamDefaultWriterCloseWithErrorPropagation. */
export function closeWithErrorPropagation(writer) {
  const { stream } = writer;
  if (closeQueuedOrInFlight(stream) || stream.state === "closed") return resolvedWith(undefined);
  if (stream.state === "errored") return rejectedWith(stream.storedError);
  return closeWritable(stream);
}

/** WritableStreamDefaultWriterGetDesiredSize. */
export function desiredSizeOf(writer) {
  const { stream } = writer;
  if (stream.state === "errored" || stream.state === "erroring") return null;
  return stream.state === "closed" ? 0 : stream.controller.desiredSize();
}

/** WritableStreamDefaultWriterRelease. */
export function releaseWriter(writer) {
  const { stream } = writer;
  const error = new SafeTypeError("The writer was released.");
  ensureReadyRejected(writer, error);
  ensureClosedRejected(writer, error);
  stream.writer = undefined;
  writer.stream = undefined;
}

/** WritableStreamDefaultWriterWrite. */
export function write(writer, chunk) {
  const { stream } = writer;
  const { controller } = stream;
  const size = controller.chunkSize(chunk);
  if (stream !== writer.stream) return rejectedWith(new SafeTypeError("The writer was released."));
  const { state } = stream;
  if (state === "errored") return rejectedWith(stream.storedError);
  if (closeQueuedOrInFlight(stream) || state === "closed") {
    return rejectedWith(new SafeTypeError("The stream takes no chunk: it is closed or closing."));
  }
  if (state === "erroring") return rejectedWith(stream.storedError);
  const request = new Deferred();
  stream.requests.push(request);
  controller.write(chunk, size);
  return request.promise;
}

// ---- the controller

const closeMark = { __proto__: null };

export class WritableController {
  stream;
  queue = new SizedQueue();
  started = false;
  algorithms; // {write, close, abort, size}, undefined once they are cleared
  highWaterMark;
  signal = undefined; // made when it is first asked for
  aborted = false;
  abortReason = undefined;
  object = undefined;

  constructor(stream, algorithms, highWaterMark) {
    this.stream = stream;
    this.algorithms = algorithms;
    this.highWaterMark = highWaterMark;
    stream.controller = this;
  }

  begin(start) {
    const { stream } = this;
    updateBackpressure(stream, this.hasBackpressure());
    const result = start === undefined ? undefined : start();
    react(resolvedWith(result), () => {
      this.started = true;
      this.advance();
    }, (error) => {
      this.started = true;
      dealWithRejection(stream, error);
    });
  }

  getSignal() {
    if (this.signal === undefined) {
      const events = core.need("abort");
      this.signal = events.createSignal();
      if (this.aborted) events.signalAbort(this.signal, this.abortReason);
    }
    return this.signal;
  }

  signalAbort(reason) {
    if (this.aborted) return;
    this.aborted = true;
    this.abortReason = reason;
    if (this.signal !== undefined) core.need("abort").signalAbort(this.signal, reason);
  }

  // [[AbortSteps]]
  abortSteps(reason) {
    const result = this.algorithms.abort(reason);
    this.algorithms = undefined;
    return result;
  }

  // [[ErrorSteps]]
  errorSteps() {
    this.queue.clear();
  }

  hasBackpressure() {
    return this.desiredSize() <= 0;
  }

  desiredSize() {
    return this.highWaterMark - this.queue.total;
  }

  chunkSize(chunk) {
    if (this.algorithms === undefined) return 1; // the stream is ending
    try {
      return this.algorithms.size(chunk);
    } catch (error) {
      this.errorIfNeeded(error);
      return 1;
    }
  }

  close() {
    this.queue.push(closeMark, 0);
    this.advance();
  }

  write(chunk, size) {
    const { stream } = this;
    try {
      this.queue.push(chunk, size);
    } catch (error) {
      this.errorIfNeeded(error);
      return;
    }
    if (!closeQueuedOrInFlight(stream) && stream.state === "writable") updateBackpressure(stream, this.hasBackpressure());
    this.advance();
  }

  errorIfNeeded(error) {
    if (this.stream.state === "writable") this.error(error);
  }

  error(error) {
    this.algorithms = undefined;
    startErroring(this.stream, error);
  }

  /** WritableStreamDefaultControllerAdvanceQueueIfNeeded. */
  advance() {
    const { stream, queue } = this;
    if (!this.started || stream.inFlightWrite !== undefined) return;
    if (stream.state === "erroring") {
      finishErroring(stream);
      return;
    }
    if (queue.length === 0) return;
    const chunk = queue.first();
    if (chunk === closeMark) this.processClose();
    else this.processWrite(chunk);
  }

  processClose() {
    const { stream } = this;
    stream.inFlightClose = stream.closeRequest;
    stream.closeRequest = undefined;
    this.queue.shift();
    const result = this.algorithms.close();
    this.algorithms = undefined;
    react(result, () => finishClose(stream), (error) => finishCloseWithError(stream, error));
  }

  processWrite(chunk) {
    const { stream } = this;
    stream.inFlightWrite = stream.requests.shift();
    react(this.algorithms.write(chunk), () => {
      finishWrite(stream);
      this.queue.shift();
      if (!closeQueuedOrInFlight(stream) && stream.state === "writable") updateBackpressure(stream, this.hasBackpressure());
      this.advance();
    }, (error) => {
      if (stream.state === "writable") this.algorithms = undefined;
      finishWriteWithError(stream, error);
    });
  }
}

const one = () => 1;

/** CreateWritableStream; make() gives the bare public object. */
export function createWritable(make, start, algorithms, highWaterMark = 1, size = one) {
  const stream = make(new Writable());
  new WritableController(stream, { __proto__: null, ...algorithms, size }, highWaterMark).begin(start);
  return stream;
}

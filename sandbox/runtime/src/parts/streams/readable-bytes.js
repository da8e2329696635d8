// ReadableByteStreamController without its interface (Streams, 4.10.11:
// https://streams.spec.whatwg.org/#rbs-controller-abstract-ops).

import { SafeRangeError, SafeTypeError } from "./core.js";
import { react, resolvedWith } from "./promises.js";
import { Queue } from "./queue.js";
import { closeStream, errorStream, fulfill, isLocked, Readable, waiting } from "./readable.js";
import { bufferByteLength, copyBytes, copyOf, describe, makeView, newBuffer, transfer } from "./views.js";
import { bufferDetached } from "./core.js";

export class ByteController {
  isBytes = true;
  stream;
  queue = new Queue(); // of {buffer, byteOffset, byteLength}
  total = 0;
  started = false;
  closeRequested = false;
  pullAgain = false;
  pulling = false;
  algorithms; // {pull, cancel}, undefined once they are cleared
  highWaterMark;
  autoAllocate;
  byobRequest = null; // {controller, view, object}
  pending = new Queue(); // pull-into descriptors
  object = undefined;
  makeRequest; // gives a byobRequest its public object

  constructor(stream, algorithms, highWaterMark, autoAllocate, makeRequest) {
    this.stream = stream;
    this.algorithms = algorithms;
    this.highWaterMark = highWaterMark;
    this.autoAllocate = autoAllocate;
    this.makeRequest = makeRequest;
    stream.controller = this;
  }

  // [[CancelSteps]]
  cancelSteps(reason) {
    this.clearPending();
    this.clearQueue();
    const result = this.algorithms.cancel(reason);
    this.algorithms = undefined;
    return result;
  }

  // [[PullSteps]]
  pullSteps(request) {
    const { stream } = this;
    if (this.total > 0) {
      this.fillRequestFromQueue(request);
      return;
    }
    if (this.autoAllocate !== undefined) {
      let buffer;
      try {
        buffer = newBuffer(this.autoAllocate);
      } catch (error) {
        request.error(error);
        return;
      }
      this.pending.push(descriptor(buffer, 0, this.autoAllocate, 1, 1, "Uint8Array", "default"));
    }
    stream.reader.requests.push(request);
    this.callPull();
  }

  // [[ReleaseSteps]]
  releaseSteps() {
    if (this.pending.length === 0) return;
    const first = this.pending.first();
    first.reader = "none";
    this.pending = new Queue();
    this.pending.push(first);
  }

  begin(start) {
    const result = start === undefined ? undefined : start();
    react(resolvedWith(result), () => {
      this.started = true;
      this.callPull();
    }, (error) => this.error(error));
  }

  callPull() {
    if (!this.shouldPull()) return;
    if (this.pulling) {
      this.pullAgain = true;
      return;
    }
    this.pulling = true;
    react(this.algorithms.pull(), () => {
      this.pulling = false;
      if (!this.pullAgain) return;
      this.pullAgain = false;
      this.callPull();
    }, (error) => this.error(error));
  }

  shouldPull() {
    const { stream } = this;
    if (stream.state !== "readable" || this.closeRequested || !this.started) return false;
    return waiting(stream, false) > 0 || waiting(stream, true) > 0 || this.desiredSize() > 0;
  }

  desiredSize() {
    const { state } = this.stream;
    if (state === "errored") return null;
    return state === "closed" ? 0 : this.highWaterMark - this.total;
  }

  clearQueue() {
    this.queue.clear();
    this.total = 0;
  }

  clearPending() {
    this.invalidateRequest();
    this.pending = new Queue();
  }

  /** ReadableByteStreamControllerInvalidateBYOBRequest. */
  invalidateRequest() {
    if (this.byobRequest === null) return;
    this.byobRequest.controller = undefined;
    this.byobRequest.view = null;
    this.byobRequest = null;
  }

  /** ReadableByteStreamControllerGetBYOBRequest. */
  getRequest() {
    if (this.byobRequest === null && this.pending.length > 0) {
      const first = this.pending.first();
      const view = makeView("Uint8Array", first.buffer, first.byteOffset + first.filled, first.byteLength - first.filled);
      this.byobRequest = { __proto__: null, controller: this, view, object: undefined };
      this.byobRequest.object = this.makeRequest(this.byobRequest);
    }
    return this.byobRequest;
  }

  close() {
    if (this.closeRequested || this.stream.state !== "readable") return;
    if (this.total > 0) {
      this.closeRequested = true;
      return;
    }
    if (this.pending.length > 0) {
      const first = this.pending.first();
      if (first.filled % first.elementSize !== 0) {
        const error = new SafeTypeError("The stream was closed in the middle of an element of the view that is being read into.");
        this.error(error);
        throw error;
      }
    }
    this.algorithms = undefined;
    closeStream(this.stream);
  }

  enqueue(view) {
    if (this.closeRequested || this.stream.state !== "readable") return;
    const { buffer, byteOffset, byteLength } = describe(view);
    if (bufferDetached(buffer)) throw new SafeTypeError("The chunk's buffer is detached.");
    const taken = transfer(buffer);
    if (this.pending.length > 0) {
      const first = this.pending.first();
      if (bufferDetached(first.buffer)) throw new SafeTypeError("The buffer of the pending BYOB request is detached.");
      this.invalidateRequest();
      first.buffer = transfer(first.buffer);
      if (first.reader === "none") this.enqueueDetached(first);
    }
    this.give(taken, byteOffset, byteLength);
    this.callPull();
  }

  // The part of enqueue that depends on who reads.
  give(buffer, byteOffset, byteLength) {
    const { stream } = this;
    const { reader } = stream;
    if (reader !== undefined && !reader.byob) {
      this.processRequests();
      if (reader.requests.length === 0) {
        this.push(buffer, byteOffset, byteLength);
      } else {
        if (this.pending.length > 0) this.pending.shift();
        fulfill(stream, makeView("Uint8Array", buffer, byteOffset, byteLength), false);
      }
    } else if (reader !== undefined) {
      this.push(buffer, byteOffset, byteLength);
      this.commitAll(this.processPending());
    } else {
      this.push(buffer, byteOffset, byteLength);
    }
  }

  push(buffer, byteOffset, byteLength) {
    this.queue.push({ __proto__: null, buffer, byteOffset, byteLength });
    this.total += byteLength;
  }

  /** ReadableByteStreamControllerEnqueueClonedChunkToQueue. */
  enqueueClone(buffer, byteOffset, byteLength) {
    let copy;
    try {
      copy = copyOf(buffer, byteOffset, byteLength);
    } catch (error) {
      this.error(error);
      throw error;
    }
    this.push(copy, 0, byteLength);
  }

  /** ReadableByteStreamControllerEnqueueDetachedPullIntoToQueue. */
  enqueueDetached(pullInto) {
    if (pullInto.filled > 0) this.enqueueClone(pullInto.buffer, pullInto.byteOffset, pullInto.filled);
    this.pending.shift();
  }

  error(error) {
    if (this.stream.state !== "readable") return;
    this.clearPending();
    this.clearQueue();
    this.algorithms = undefined;
    errorStream(this.stream, error);
  }

  /** ReadableByteStreamControllerFillReadRequestFromQueue. */
  fillRequestFromQueue(request) {
    const { buffer, byteOffset, byteLength } = this.queue.shift();
    this.total -= byteLength;
    this.handleDrain();
    request.chunk(makeView("Uint8Array", buffer, byteOffset, byteLength));
  }

  /** ReadableByteStreamControllerHandleQueueDrain. */
  handleDrain() {
    if (this.total === 0 && this.closeRequested) {
      this.algorithms = undefined;
      closeStream(this.stream);
    } else {
      this.callPull();
    }
  }

  /** ReadableByteStreamControllerProcessReadRequestsUsingQueue. */
  processRequests() {
    const { requests } = this.stream.reader;
    while (requests.length > 0) {
      if (this.total === 0) return;
      this.fillRequestFromQueue(requests.shift());
    }
  }

  /** ReadableByteStreamControllerProcessPullIntoDescriptorsUsingQueue. */
  processPending() {
    const filled = new Queue();
    while (this.pending.length > 0) {
      if (this.total === 0) break;
      const pullInto = this.pending.first();
      if (this.fillFromQueue(pullInto)) {
        this.pending.shift();
        filled.push(pullInto);
      }
    }
    return filled;
  }

  commitAll(filled) {
    while (filled.length > 0) this.commit(filled.shift());
  }

  /** ReadableByteStreamControllerCommitPullIntoDescriptor. */
  commit(pullInto) {
    const done = this.stream.state === "closed";
    fulfill(this.stream, convert(pullInto), done);
  }

  /** ReadableByteStreamControllerFillPullIntoDescriptorFromQueue: true when the descriptor is ready. */
  fillFromQueue(pullInto) {
    const most = lesser(this.total, pullInto.byteLength - pullInto.filled);
    const mostFilled = pullInto.filled + most;
    const aligned = mostFilled - (mostFilled % pullInto.elementSize);
    const ready = aligned >= pullInto.minimum;
    let left = ready ? aligned - pullInto.filled : most;
    while (left > 0) {
      const head = this.queue.first();
      const count = lesser(left, head.byteLength);
      copyBytes(pullInto.buffer, pullInto.byteOffset + pullInto.filled, head.buffer, head.byteOffset, count);
      if (head.byteLength === count) {
        this.queue.shift();
      } else {
        head.byteOffset += count;
        head.byteLength -= count;
      }
      this.total -= count;
      pullInto.filled += count;
      left -= count;
    }
    return ready;
  }

  /** ReadableByteStreamControllerPullInto. */
  pullInto(view, min, request) {
    const { stream } = this;
    const { name, buffer, byteOffset, byteLength, elementSize } = describe(view);
    let taken;
    try {
      taken = transfer(buffer);
    } catch (error) {
      request.error(error);
      return;
    }
    const pullInto = descriptor(taken, byteOffset, byteLength, min * elementSize, elementSize, name, "byob");
    if (this.pending.length > 0) {
      this.pending.push(pullInto);
      stream.reader.requests.push(request);
      return;
    }
    if (stream.state === "closed") {
      request.close(makeView(name, taken, byteOffset, 0));
      return;
    }
    if (this.total > 0) {
      if (this.fillFromQueue(pullInto)) {
        const filled = convert(pullInto);
        this.handleDrain();
        request.chunk(filled);
        return;
      }
      if (this.closeRequested) {
        const error = new SafeTypeError("The stream ends in the middle of an element of the view.");
        this.error(error);
        request.error(error);
        return;
      }
    }
    this.pending.push(pullInto);
    stream.reader.requests.push(request);
    this.callPull();
  }

  /** ReadableByteStreamControllerRespond. */
  respond(bytesWritten) {
    const first = this.pending.first();
    if (this.stream.state === "closed") {
      if (bytesWritten !== 0) throw new SafeTypeError("The stream is closed: only 0 bytes can be given.");
    } else {
      if (bytesWritten === 0) throw new SafeTypeError("0 bytes can be given only once the stream is closed.");
      if (first.filled + bytesWritten > first.byteLength) throw new SafeRangeError("More bytes were given than the view holds.");
    }
    first.buffer = transfer(first.buffer);
    this.respondInternal(bytesWritten);
  }

  /** ReadableByteStreamControllerRespondWithNewView. */
  respondWithView(view) {
    const first = this.pending.first();
    const { buffer, byteOffset, byteLength } = describe(view);
    if (this.stream.state === "closed") {
      if (byteLength !== 0) throw new SafeTypeError("The stream is closed: only an empty view can be given.");
    } else if (byteLength === 0) {
      throw new SafeTypeError("An empty view can be given only once the stream is closed.");
    }
    if (first.byteOffset + first.filled !== byteOffset) throw new SafeRangeError("The view begins at another place than the request's.");
    if (first.bufferByteLength !== bufferByteLength(buffer)) throw new SafeRangeError("The view's buffer has another length than the request's.");
    if (first.filled + byteLength > first.byteLength) throw new SafeRangeError("The view is longer than the request's.");
    first.buffer = transfer(buffer);
    this.respondInternal(byteLength);
  }

  respondInternal(bytesWritten) {
    const first = this.pending.first();
    this.invalidateRequest();
    if (this.stream.state === "closed") this.respondClosed(first);
    else this.respondReadable(bytesWritten, first);
    this.callPull();
  }

  respondClosed(first) {
    const { stream } = this;
    if (first.reader === "none") this.pending.shift();
    if (stream.reader === undefined || !stream.reader.byob) return;
    const filled = new Queue();
    const count = stream.reader.requests.length;
    while (filled.length < count) filled.push(this.pending.shift());
    this.commitAll(filled);
  }

  respondReadable(bytesWritten, first) {
    first.filled += bytesWritten;
    if (first.reader === "none") {
      this.enqueueDetached(first);
      this.commitAll(this.processPending());
      return;
    }
    if (first.filled < first.minimum) return;
    this.pending.shift();
    const rest = first.filled % first.elementSize;
    if (rest > 0) {
      const end = first.byteOffset + first.filled;
      this.enqueueClone(first.buffer, end - rest, rest);
    }
    first.filled -= rest;
    const filled = this.processPending();
    this.commit(first);
    this.commitAll(filled);
  }

  // The methods of the interface.
  closeChecked() {
    if (this.closeRequested) throw new SafeTypeError("The stream is closing already.");
    if (this.stream.state !== "readable") throw new SafeTypeError("The stream is closed or errored.");
    this.close();
  }
  enqueueChecked(view) {
    const { buffer, byteLength } = describe(view);
    if (byteLength === 0) throw new SafeTypeError("The chunk is empty.");
    if (bufferByteLength(buffer) === 0) throw new SafeTypeError("The chunk's buffer is empty.");
    if (this.closeRequested) throw new SafeTypeError("The stream takes no chunk: it is closing.");
    if (this.stream.state !== "readable") throw new SafeTypeError("The stream takes no chunk: it is closed or errored.");
    this.enqueue(view);
  }
}

const lesser = (a, b) => (a < b ? a : b);

function descriptor(buffer, byteOffset, byteLength, minimum, elementSize, name, reader) {
  return {
    __proto__: null, buffer, bufferByteLength: bufferByteLength(buffer), byteOffset, byteLength, filled: 0, minimum, elementSize, name, reader,
  };
}

/** ReadableByteStreamControllerConvertPullIntoDescriptor. */
function convert(pullInto) {
  const { name, byteOffset, filled, elementSize } = pullInto;
  return makeView(name, transfer(pullInto.buffer), byteOffset, filled / elementSize);
}

/** CreateReadableByteStream; see createReadable. */
export function createReadableBytes(make, makeRequest, start, pull, cancel, highWaterMark = 0) {
  const stream = make(new Readable());
  new ByteController(stream, { __proto__: null, pull, cancel }, highWaterMark, undefined, makeRequest).begin(start);
  return stream;
}

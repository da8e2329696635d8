// ReadableStreamDefaultController without its interface (Streams, 4.10.2:
// https://streams.spec.whatwg.org/#rs-default-controller-abstract-ops).

import { SafeTypeError } from "./core.js";
import { react, resolvedWith } from "./promises.js";
import { SizedQueue } from "./queue.js";
import { closeStream, errorStream, fulfill, isLocked, Readable, waiting } from "./readable.js";

export class DefaultController {
  isBytes = false;
  stream;
  queue = new SizedQueue();
  started = false;
  closeRequested = false;
  pullAgain = false;
  pulling = false;
  algorithms; // {pull, cancel, size}, undefined once they are cleared
  highWaterMark;
  object = undefined;

  constructor(stream, algorithms, highWaterMark) {
    this.stream = stream;
    this.algorithms = algorithms;
    this.highWaterMark = highWaterMark;
    stream.controller = this;
  }

  // [[CancelSteps]]
  cancelSteps(reason) {
    this.queue.clear();
    const result = this.algorithms.cancel(reason);
    this.algorithms = undefined;
    return result;
  }

  // [[PullSteps]]
  pullSteps(request) {
    const { stream, queue } = this;
    if (queue.length === 0) {
      stream.reader.requests.push(request);
      this.callPull();
      return;
    }
    const chunk = queue.shift();
    if (this.closeRequested && queue.length === 0) {
      this.algorithms = undefined;
      closeStream(stream);
    } else {
      this.callPull();
    }
    request.chunk(chunk);
  }

  // [[ReleaseSteps]]
  releaseSteps() {}

  /** SetUpReadableStreamDefaultController from the start algorithm on; start may throw. */
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
    if (!this.canCloseOrEnqueue() || !this.started) return false;
    return (isLocked(stream) && waiting(stream, false) > 0) || this.desiredSize() > 0;
  }

  canCloseOrEnqueue() {
    return !this.closeRequested && this.stream.state === "readable";
  }

  desiredSize() {
    const { state } = this.stream;
    if (state === "errored") return null;
    return state === "closed" ? 0 : this.highWaterMark - this.queue.total;
  }

  hasBackpressure() {
    return !this.shouldPull();
  }

  close() {
    if (!this.canCloseOrEnqueue()) return;
    this.closeRequested = true;
    if (this.queue.length > 0) return;
    this.algorithms = undefined;
    closeStream(this.stream);
  }

  enqueue(chunk) {
    if (!this.canCloseOrEnqueue()) return;
    const { stream } = this;
    if (isLocked(stream) && waiting(stream, false) > 0) {
      fulfill(stream, chunk, false);
    } else {
      let size;
      try {
        size = this.algorithms.size(chunk);
        // The size algorithm may have ended the stream and so cleared the queue; the standard still enqueues.
        this.queue.push(chunk, size);
      } catch (error) {
        this.error(error);
        throw error;
      }
    }
    this.callPull();
  }

  error(error) {
    if (this.stream.state !== "readable") return;
    this.queue.clear();
    this.algorithms = undefined;
    errorStream(this.stream, error);
  }

  // The methods of the interface, which throw where the operations above do nothing.
  closeChecked() {
    if (!this.canCloseOrEnqueue()) throw new SafeTypeError("The stream cannot be closed: it is closed, errored or closing.");
    this.close();
  }
  enqueueChecked(chunk) {
    if (!this.canCloseOrEnqueue()) throw new SafeTypeError("The stream takes no chunk: it is closed, errored or closing.");
    this.enqueue(chunk);
  }
}

const one = () => 1;

/** CreateReadableStream; make() gives the bare public object. The algorithms pull and cancel return promises. */
export function createReadable(make, start, pull, cancel, highWaterMark = 1, size = one) {
  const stream = make(new Readable());
  new DefaultController(stream, { __proto__: null, pull, cancel, size }, highWaterMark).begin(start);
  return stream;
}

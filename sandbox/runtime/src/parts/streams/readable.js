// ReadableStream without its interface: the slots and abstract operations (Streams, 4.9 and 4.3:
// https://streams.spec.whatwg.org/#rs-abstract-ops). A "source" below is a Readable; what the program holds is its
// `object`. Requests have the methods chunk(value), close(value) and error(reason).

import { SafeTypeError } from "./core.js";
import { Deferred, markHandled, react, rejectedDeferred, rejectedWith, resolvedDeferred, resolvedWith } from "./promises.js";
import { Queue } from "./queue.js";

export class Readable {
  state = "readable";
  reader = undefined;
  controller = undefined;
  storedError = undefined;
  disturbed = false;
  object = undefined;
}

export const isLocked = (stream) => stream.reader !== undefined;

// ---- readers

/** A ReadableStreamDefaultReader or ReadableStreamBYOBReader. */
export class Reader {
  stream = undefined;
  closed = undefined; // Deferred
  requests = new Queue();
  byob;
  object = undefined;
  constructor(byob) {
    this.byob = byob;
  }
}

/** SetUpReadableStreamDefaultReader and SetUpReadableStreamBYOBReader. */
export function attachReader(reader, stream) {
  if (isLocked(stream)) throw new SafeTypeError("The stream is locked to a reader.");
  if (reader.byob && !stream.controller.isBytes) throw new SafeTypeError("A BYOB reader needs a readable byte stream.");
  reader.stream = stream;
  stream.reader = reader;
  if (stream.state === "readable") reader.closed = new Deferred();
  else if (stream.state === "closed") reader.closed = resolvedDeferred(undefined);
  else reader.closed = rejectedDeferred(stream.storedError);
  return reader;
}

export const acquireDefaultReader = (stream) => attachReader(new Reader(false), stream);
export const acquireByobReader = (stream) => attachReader(new Reader(true), stream);

/** ReadableStreamDefaultReaderRead. */
export function readDefault(reader, request) {
  const { stream } = reader;
  stream.disturbed = true;
  if (stream.state === "closed") request.close(undefined);
  else if (stream.state === "errored") request.error(stream.storedError);
  else stream.controller.pullSteps(request);
}

/** ReadableStreamBYOBReaderRead. */
export function readByob(reader, view, min, request) {
  const { stream } = reader;
  stream.disturbed = true;
  if (stream.state === "errored") request.error(stream.storedError);
  else stream.controller.pullInto(view, min, request);
}

/** ReadableStreamDefaultReaderRelease and ReadableStreamBYOBReaderRelease. */
export function releaseReader(reader) {
  genericRelease(reader);
  errorRequests(reader, new SafeTypeError("The reader was released."));
}

function genericRelease(reader) {
  const { stream } = reader;
  const error = new SafeTypeError("The reader was released.");
  if (stream.state === "readable") reader.closed.reject(error);
  else reader.closed = rejectedDeferred(error);
  markHandled(reader.closed.promise);
  stream.controller.releaseSteps();
  stream.reader = undefined;
  reader.stream = undefined;
}

/** ReadableStreamDefaultReaderErrorReadRequests and the one for BYOB readers. */
function errorRequests(reader, error) {
  const { requests } = reader;
  reader.requests = new Queue();
  while (requests.length > 0) requests.shift().error(error);
}

// ---- streams

/** ReadableStreamCancel. */
export function cancelStream(stream, reason) {
  stream.disturbed = true;
  if (stream.state === "closed") return resolvedWith(undefined);
  if (stream.state === "errored") return rejectedWith(stream.storedError);
  closeStream(stream);
  const { reader } = stream;
  if (reader !== undefined && reader.byob) {
    const { requests } = reader;
    reader.requests = new Queue();
    while (requests.length > 0) requests.shift().close(undefined);
  }
  return react(stream.controller.cancelSteps(reason), () => undefined);
}

/** ReadableStreamClose. */
export function closeStream(stream) {
  stream.state = "closed";
  const { reader } = stream;
  if (reader === undefined) return;
  reader.closed.resolve(undefined);
  if (reader.byob) return;
  const { requests } = reader;
  reader.requests = new Queue();
  while (requests.length > 0) requests.shift().close(undefined);
}

/** ReadableStreamError. */
export function errorStream(stream, error) {
  stream.state = "errored";
  stream.storedError = error;
  const { reader } = stream;
  if (reader === undefined) return;
  reader.closed.reject(error);
  markHandled(reader.closed.promise);
  errorRequests(reader, error);
}

/** How many reads the stream's reader waits for, if it is a default reader (or, with byob, a BYOB one). */
export const waiting = (stream, byob) => (stream.reader !== undefined && stream.reader.byob === byob ? stream.reader.requests.length : 0);

/** ReadableStreamFulfillReadRequest, ReadableStreamFulfillReadIntoRequest. */
export function fulfill(stream, chunk, done) {
  const request = stream.reader.requests.shift();
  if (done) request.close(chunk);
  else request.chunk(chunk);
}

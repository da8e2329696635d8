// ReadableStreamPipeTo (Streams, 4.9.1: https://streams.spec.whatwg.org/#readable-stream-pipe-to).

import { core, SafePromise, SafeTypeError } from "./core.js";
import { bothOf, markHandled, react, resolvedWith } from "./promises.js";
import { acquireDefaultReader, cancelStream, readDefault, releaseReader } from "./readable.js";
import { abortWritable, acquireWriter, closeQueuedOrInFlight, closeWithErrorPropagation, releaseWriter, write } from "./writable.js";

const ignore = () => {};

/** options: {preventClose, preventAbort, preventCancel, signal}. Returns the promise of pipeTo. */
export function pipe(source, dest, options) {
  const { preventClose, preventAbort, preventCancel, signal } = options;
  const reader = acquireDefaultReader(source);
  const writer = acquireWriter(dest);
  source.disturbed = true;
  let shuttingDown = false;
  let currentWrite = resolvedWith(undefined);
  let resolve, reject, abort;
  const result = new SafePromise((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });

  // One round of the loop: wait until the writer wants a chunk, read one, write it. Resolves with true at the end.
  function step() {
    if (shuttingDown) return resolvedWith(true);
    return react(writer.ready.promise, () => new SafePromise((resolveRead, rejectRead) => {
      readDefault(reader, {
        __proto__: null,
        // The source may be in the middle of enqueue(): the sink is called in a microtask of its own.
        chunk(chunk) {
          currentWrite = react(resolvedWith(undefined), () => {
            const written = writer.stream === undefined ? undefined : react(write(writer, chunk), undefined, ignore);
            resolveRead(false);
            return written;
          });
        },
        close: () => resolveRead(true),
        error: rejectRead,
      });
    }));
  }
  function loop() {
    return new SafePromise((resolveLoop, rejectLoop) => {
      const next = (done) => {
        if (done) resolveLoop(undefined);
        else react(step(), next, rejectLoop);
      };
      next(false);
    });
  }

  function waitForWrites() {
    const awaited = currentWrite;
    return react(currentWrite, () => (awaited === currentWrite ? undefined : waitForWrites()));
  }
  function finalize(failed, error) {
    releaseWriter(writer);
    releaseReader(reader);
    if (abort !== undefined) core.need("abort").removeAbortAlgorithm(signal, abort);
    if (failed) reject(error);
    else resolve(undefined);
  }
  function shutdown(failed, error, action) {
    if (shuttingDown) return;
    shuttingDown = true;
    const rest = action === undefined
      ? () => finalize(failed, error)
      : () => {
        react(action(), () => finalize(failed, error), (newError) => finalize(true, newError));
      };
    if (dest.state === "writable" && !closeQueuedOrInFlight(dest)) react(waitForWrites(), rest);
    else rest();
  }

  function onAbort() {
    const reason = core.need("abort").signalReason(signal);
    shutdown(true, reason, () => bothOf(
      !preventAbort && dest.state === "writable" ? abortWritable(dest, reason) : resolvedWith(undefined),
      !preventCancel && source.state === "readable" ? cancelStream(source, reason) : resolvedWith(undefined),
    ));
  }
  if (signal !== undefined) {
    const events = core.need("abort");
    if (events.isAborted(signal)) {
      onAbort();
      return result;
    }
    abort = onAbort;
    events.addAbortAlgorithm(signal, abort);
  }

  whenErrored(source, reader, (error) => {
    shutdown(true, error, preventAbort ? undefined : () => abortWritable(dest, error));
  });
  whenErrored(dest, writer, (error) => {
    shutdown(true, error, preventCancel ? undefined : () => cancelStream(source, error));
  });
  whenClosed(source, reader, () => {
    shutdown(false, undefined, preventClose ? undefined : () => closeWithErrorPropagation(writer));
  });
  if (closeQueuedOrInFlight(dest) || dest.state === "closed") {
    const error = new SafeTypeError("The destination closed before all chunks were piped to it.");
    shutdown(true, error, preventCancel ? undefined : () => cancelStream(source, error));
  }
  markHandled(loop());
  return result;
}

function whenErrored(stream, holder, steps) {
  if (stream.state === "errored") steps(stream.storedError);
  else react(holder.closed.promise, undefined, steps);
}
function whenClosed(stream, holder, steps) {
  if (stream.state === "closed") steps();
  else react(holder.closed.promise, steps, ignore);
}

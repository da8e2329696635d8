// ReadableStreamTee (Streams, 4.9.2: https://streams.spec.whatwg.org/#abstract-opdef-readablestreamtee).

import { Deferred, react, resolvedWith } from "./promises.js";
import {
  acquireByobReader, acquireDefaultReader, cancelStream, readByob, readDefault, releaseReader,
} from "./readable.js";
import { createReadable } from "./readable-default.js";
import { createReadableBytes } from "./readable-bytes.js";
import { copyOf, describe, makeView } from "./views.js";

const microtask = (steps) => {
  react(resolvedWith(undefined), steps);
};

// What both kinds share: who has cancelled, and why.
function cancellation(stream) {
  const both = { __proto__: null, promise: new Deferred(), first: false, second: false, reasons: [undefined, undefined] };
  const settle = () => {
    if (both.first && both.second) both.promise.resolve(cancelStream(stream, both.reasons));
    return both.promise.promise;
  };
  both.cancelFirst = (reason) => {
    both.first = true;
    both.reasons[0] = reason;
    return settle();
  };
  both.cancelSecond = (reason) => {
    both.second = true;
    both.reasons[1] = reason;
    return settle();
  };
  return both;
}

/** ReadableStreamDefaultTee. clone, if given, makes the second branch's chunks. */
export function teeDefault(make, stream, clone) {
  const reader = acquireDefaultReader(stream);
  const cancelled = cancellation(stream);
  let reading = false;
  let readAgain = false;
  let first, second;

  function give(chunk) {
    readAgain = false;
    let copy = chunk;
    if (!cancelled.second && clone !== undefined) {
      try {
        copy = clone(chunk);
      } catch (error) {
        first.controller.error(error);
        second.controller.error(error);
        cancelled.promise.resolve(cancelStream(stream, error));
        return;
      }
    }
    if (!cancelled.first) first.controller.enqueue(chunk);
    if (!cancelled.second) second.controller.enqueue(copy);
    reading = false;
    if (readAgain) pull();
  }

  const request = {
    __proto__: null,
    chunk: (chunk) => microtask(() => give(chunk)),
    close() {
      reading = false;
      if (!cancelled.first) first.controller.close();
      if (!cancelled.second) second.controller.close();
      if (!cancelled.first || !cancelled.second) cancelled.promise.resolve(undefined);
    },
    error() {
      reading = false;
    },
  };

  function pull() {
    if (reading) {
      readAgain = true;
    } else {
      reading = true;
      readDefault(reader, request);
    }
    return resolvedWith(undefined);
  }

  first = createReadable(make, undefined, pull, cancelled.cancelFirst);
  second = createReadable(make, undefined, pull, cancelled.cancelSecond);
  react(reader.closed.promise, undefined, (error) => {
    first.controller.error(error);
    second.controller.error(error);
    if (!cancelled.first || !cancelled.second) cancelled.promise.resolve(undefined);
  });
  return [first, second];
}

const cloneAsBytes = (view) => {
  const { buffer, byteOffset, byteLength } = describe(view);
  return makeView("Uint8Array", copyOf(buffer, byteOffset, byteLength), 0, byteLength);
};

/** ReadableByteStreamTee. */
export function teeBytes(make, makeRequest, stream) {
  let reader = acquireDefaultReader(stream);
  const cancelled = cancellation(stream);
  let reading = false;
  let againForFirst = false;
  let againForSecond = false;
  let first, second;

  function forwardErrors(current) {
    react(current.closed.promise, undefined, (error) => {
      if (current !== reader) return;
      first.controller.error(error);
      second.controller.error(error);
      if (!cancelled.first || !cancelled.second) cancelled.promise.resolve(undefined);
    });
  }

  function fail(error) {
    first.controller.error(error);
    second.controller.error(error);
    cancelled.promise.resolve(cancelStream(stream, error));
  }

  function more() {
    reading = false;
    if (againForFirst) pullFirst();
    else if (againForSecond) pullSecond();
  }

  function giveDefault(chunk) {
    againForFirst = false;
    againForSecond = false;
    let copy = chunk;
    if (!cancelled.first && !cancelled.second) {
      try {
        copy = cloneAsBytes(chunk);
      } catch (error) {
        fail(error);
        return;
      }
    }
    if (!cancelled.first) first.controller.enqueue(chunk);
    if (!cancelled.second) second.controller.enqueue(copy);
    more();
  }

  const request = {
    __proto__: null,
    chunk: (chunk) => microtask(() => giveDefault(chunk)),
    close() {
      reading = false;
      if (!cancelled.first) first.controller.close();
      if (!cancelled.second) second.controller.close();
      if (first.controller.pending.length > 0) first.controller.respond(0);
      if (second.controller.pending.length > 0) second.controller.respond(0);
      if (!cancelled.first || !cancelled.second) cancelled.promise.resolve(undefined);
    },
    error() {
      reading = false;
    },
  };

  function useReader(byob) {
    if (reader.byob === byob) return;
    releaseReader(reader);
    reader = byob ? acquireByobReader(stream) : acquireDefaultReader(stream);
    forwardErrors(reader);
  }

  function pullDefault() {
    useReader(false);
    readDefault(reader, request);
  }

  function giveByob(chunk, forSecond) {
    againForFirst = false;
    againForSecond = false;
    const byob = forSecond ? second : first;
    const other = forSecond ? first : second;
    const byobCancelled = forSecond ? cancelled.second : cancelled.first;
    const otherCancelled = forSecond ? cancelled.first : cancelled.second;
    if (!otherCancelled) {
      let copy;
      try {
        copy = cloneAsBytes(chunk);
      } catch (error) {
        fail(error);
        return;
      }
      if (!byobCancelled) byob.controller.respondWithView(chunk);
      other.controller.enqueue(copy);
    } else if (!byobCancelled) {
      byob.controller.respondWithView(chunk);
    }
    more();
  }

  function closeByob(chunk, forSecond) {
    reading = false;
    const byob = forSecond ? second : first;
    const other = forSecond ? first : second;
    const byobCancelled = forSecond ? cancelled.second : cancelled.first;
    const otherCancelled = forSecond ? cancelled.first : cancelled.second;
    if (!byobCancelled) byob.controller.close();
    if (!otherCancelled) other.controller.close();
    if (chunk !== undefined) {
      if (!byobCancelled) byob.controller.respondWithView(chunk);
      if (!otherCancelled && other.controller.pending.length > 0) other.controller.respond(0);
    }
    if (!byobCancelled || !otherCancelled) cancelled.promise.resolve(undefined);
  }

  function pullByob(view, forSecond) {
    useReader(true);
    readByob(reader, view, 1, {
      __proto__: null,
      chunk: (chunk) => microtask(() => giveByob(chunk, forSecond)),
      close: (chunk) => closeByob(chunk, forSecond),
      error() {
        reading = false;
      },
    });
  }

  function pullBranch(branch, forSecond) {
    reading = true;
    const wanted = branch.controller.getRequest();
    if (wanted === null) pullDefault();
    else pullByob(wanted.view, forSecond);
    return resolvedWith(undefined);
  }
  function pullFirst() {
    if (!reading) return pullBranch(first, false);
    againForFirst = true;
    return resolvedWith(undefined);
  }
  function pullSecond() {
    if (!reading) return pullBranch(second, true);
    againForSecond = true;
    return resolvedWith(undefined);
  }

  first = createReadableBytes(make, makeRequest, undefined, pullFirst, cancelled.cancelFirst);
  second = createReadableBytes(make, makeRequest, undefined, pullSecond, cancelled.cancelSecond);
  forwardErrors(reader);
  return [first, second];
}

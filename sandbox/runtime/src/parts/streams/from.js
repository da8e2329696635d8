// ReadableStreamFromIterable (Streams, 4.9.1: https://streams.spec.whatwg.org/#abstract-opdef-readablestreamfromiterable)
// with GetIterator(async) of ECMAScript (7.4.4, 27.1.6).

import { apply, asyncIterator, isObject, SafeTypeError, symbolIterator } from "./core.js";
import { react, rejectedWith, resolvedWith } from "./promises.js";
import { createReadable } from "./readable-default.js";

function getMethod(value, key) {
  const method = value[key];
  if (method === undefined || method === null) return undefined;
  if (typeof method !== "function") throw new SafeTypeError("The argument's iterator method is not a function.");
  return method;
}

function start(method, value) {
  const iterator = apply(method, value, []);
  if (!isObject(iterator)) throw new SafeTypeError("The argument's iterator is not an object.");
  return iterator;
}

// The steps next() and end(reason) of an iterator record: each returns the promise of a result object, or throws.
// end gives undefined where there is no method return.
function open(value) {
  if (value === undefined || value === null) throw new SafeTypeError("The argument is not iterable.");
  let method = getMethod(value, asyncIterator);
  const isAsync = method !== undefined;
  if (!isAsync) method = getMethod(value, symbolIterator);
  if (method === undefined) throw new SafeTypeError("The argument is not iterable.");
  const iterator = start(method, value);
  const { next } = iterator;
  const adapt = isAsync ? resolvedWith : fromSync;
  return {
    __proto__: null,
    next: () => adapt(apply(next, iterator, []), iterator, true),
    end(reason) {
      const finish = getMethod(iterator, "return");
      return finish === undefined ? undefined : adapt(apply(finish, iterator, [reason]), iterator, false);
    },
  };
}

// AsyncFromSyncIteratorContinuation: waits for the value of a synchronous result.
function fromSync(result, iterator, closes) {
  if (!isObject(result)) throw new SafeTypeError("The iterator's result is not an object.");
  const { done, value } = result;
  return react(resolvedWith(value), (settled) => ({ __proto__: null, done, value: settled }), (error) => {
    if (!done && closes) {
      try {
        const finish = getMethod(iterator, "return");
        if (finish !== undefined) apply(finish, iterator, []);
      } catch {
        // the first error counts
      }
    }
    throw error;
  });
}

/** Returns the Readable over an iterable or async iterable. */
export function readableFrom(make, iterable) {
  const record = open(iterable);
  function pull() {
    let promise;
    try {
      promise = record.next();
    } catch (error) {
      return rejectedWith(error);
    }
    return react(promise, (result) => {
      if (!isObject(result)) throw new SafeTypeError("The iterator's result is not an object.");
      if (result.done) stream.controller.close();
      else stream.controller.enqueue(result.value);
    });
  }
  function cancel(reason) {
    let promise;
    try {
      promise = record.end(reason);
    } catch (error) {
      return rejectedWith(error);
    }
    if (promise === undefined) return resolvedWith(undefined);
    return react(promise, (result) => {
      if (!isObject(result)) throw new SafeTypeError("The iterator's result is not an object.");
    });
  }
  const stream = createReadable(make, undefined, pull, cancel, 0);
  return stream;
}

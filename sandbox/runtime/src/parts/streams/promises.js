// Promises as Web IDL speaks of them (https://webidl.spec.whatwg.org/#js-promise-manipulation). Nothing here calls what
// the program may have put on Promise.prototype.

import { promiseThen, SafePromise } from "./core.js";

export const resolvedWith = (value) => new SafePromise((resolve) => resolve(value));
export const rejectedWith = (reason) => new SafePromise((_, reject) => reject(reason));
export const react = (promise, fulfilled, rejected) => promiseThen(promise, fulfilled, rejected);

const ignore = () => {};

/** Marks a promise as handled: its rejection is reported to nobody. */
export const markHandled = (promise) => {
  promiseThen(promise, undefined, ignore);
};

/** A promise with the means to settle it. settled says whether that was done. */
export class Deferred {
  promise;
  settled = false;
  #resolve;
  #reject;
  constructor() {
    this.promise = new SafePromise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }
  resolve(value) {
    this.settled = true;
    this.#resolve(value);
  }
  reject(reason) {
    this.settled = true;
    this.#reject(reason);
  }
}

export function resolvedDeferred(value) {
  const deferred = new Deferred();
  deferred.resolve(value);
  return deferred;
}

/** A rejected promise that counts as handled. */
export function rejectedDeferred(reason) {
  const deferred = new Deferred();
  deferred.reject(reason);
  markHandled(deferred.promise);
  return deferred;
}

/** Runs the steps of an operation that returns a promise: what they throw becomes its rejection (Web IDL, 3.7.6). */
export function promising(steps) {
  try {
    return steps();
  } catch (error) {
    return rejectedWith(error);
  }
}

/** Fulfils with undefined when both are fulfilled, rejects with the first rejection. */
export function bothOf(first, second) {
  return new SafePromise((resolve, reject) => {
    let left = 2;
    const one = () => {
      if (--left === 0) resolve(undefined);
    };
    react(first, one, reject);
    react(second, one, reject);
  });
}

// Queuing strategies (Streams, 7: https://streams.spec.whatwg.org/#qs).

import { apply, finish, requireArguments, required, SafeRangeError, toCallback, toDictionary, toUnrestrictedDouble } from "./core.js";

const initMembers = () => [["highWaterMark", toUnrestrictedDouble, required]];
const strategyMembers = () => [["highWaterMark", toUnrestrictedDouble], ["size", toCallback]];

/** Converts to the dictionary QueuingStrategy. */
export const toStrategy = (value) => toDictionary(value, strategyMembers(), "The queuing strategy");

/** ExtractHighWaterMark. */
export function highWaterMarkOf(strategy, fallback) {
  const mark = strategy.highWaterMark;
  if (mark === undefined) return fallback;
  if (!(mark >= 0)) throw new SafeRangeError("The high water mark must be a number that is not negative.");
  return mark;
}

const one = () => 1;

/** ExtractSizeAlgorithm. */
export function sizeOf(strategy) {
  const { size } = strategy;
  return size === undefined ? one : (chunk) => +apply(size, undefined, [chunk]);
}

// The size functions are one per global, and no constructors.
const sizes = {
  byteLength: { size(chunk) { return chunk.byteLength; } }.size,
  count: { size() { return 1; } }.size,
};

export function makeStrategies() {
  class ByteLengthQueuingStrategy {
    #mark;
    constructor(init) {
      requireArguments("ByteLengthQueuingStrategy", arguments.length, 1);
      this.#mark = toDictionary(init, initMembers(), "The argument").highWaterMark;
    }
    get highWaterMark() {
      return this.#mark;
    }
    get size() {
      this.#mark;
      return sizes.byteLength;
    }
  }
  class CountQueuingStrategy {
    #mark;
    constructor(init) {
      requireArguments("CountQueuingStrategy", arguments.length, 1);
      this.#mark = toDictionary(init, initMembers(), "The argument").highWaterMark;
    }
    get highWaterMark() {
      return this.#mark;
    }
    get size() {
      this.#mark;
      return sizes.count;
    }
  }
  const interfaces = { __proto__: null, ByteLengthQueuingStrategy, CountQueuingStrategy };
  for (const name in interfaces) finish(interfaces[name], { __proto__: null, name });
  return { __proto__: null, interfaces };
}

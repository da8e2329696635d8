// What the interfaces of both kinds of readable streams share.

import { defineProperty, SafeTypeError } from "./core.js";
import { cancelStream } from "./readable.js";

export const maxSafe = 9007199254740991;

// What a request of read() does: settles a promise.
export const settleRead = (resolve, reject) => ({
  __proto__: null,
  chunk: (value) => resolve({ value, done: false }),
  close: (value) => resolve({ value, done: true }),
  error: reject,
});

export function attached(slots) {
  if (slots.stream === undefined) throw new SafeTypeError("The reader was released.");
}

export function cancelByReader(slots, reason) {
  attached(slots);
  return cancelStream(slots.stream, reason);
}

// An interface without a constructor has the length 0.
export function zeroLength(constructor) {
  defineProperty(constructor, "length", { __proto__: null, value: 0, configurable: true });
}

// The clock of one execution (High Resolution Time, 4 and 7.1, https://www.w3.org/TR/hr-time-3/): it begins when the
// program does, and its steps are 0.1 ms, as in a context that is not cross-origin isolated.

import { floor } from "./primordials.js";

/** Returns start(), by which the clock begins, and now(), the milliseconds since then. */
export function makeClock(native) {
  let origin = 0;
  return {
    __proto__: null,
    start() {
      origin = native.monotonicNow();
    },
    now: () => coarse(native.monotonicNow() - origin),
  };
}

/** Rounds milliseconds down to a step of the clock. */
export const coarse = (ms) => floor(ms * 10) / 10;

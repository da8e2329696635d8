// The few conversions of Web IDL (https://webidl.spec.whatwg.org/) that the library needs so far.

import { SafeTypeError } from "./primordials.js";

/** Refuses a call with too few arguments, worded as browsers do. */
export function requireArguments(operation, given, required) {
  if (given >= required) return;
  const noun = required === 1 ? "argument" : "arguments";
  throw new SafeTypeError(
    `Failed to execute '${operation}': ${required} ${noun} required, but only ${given} present.`,
  );
}

/** Converts to an IDL `long`: 32 bits, wrapping, NaN is 0. Runs valueOf of the guest as the standard says. */
export const toLong = (value) => +value | 0;

/** Converts to an IDL `DOMString`. */
export const toDOMString = (value) => `${value}`;

// Errors that nobody can catch any more become a log line (HTML, 8.1.4.6 "report an exception"). They never change the outcome.

import { inspectArgument } from "./inspect.js";

const labels = {
  __proto__: null,
  uncaught: "Uncaught ",
  unhandledrejection: "Unhandled rejection: ",
};

/** Returns report(kind, reason) with kind "uncaught" or "unhandledrejection". It never throws. */
export function makeReport(native, settings) {
  return function report(kind, reason) {
    let text;
    try {
      text = inspectArgument(native, settings, reason);
    } catch {
      text = "<a value that cannot be shown>"; // the stack is nearly exhausted
    }
    native.log("error", labels[kind] + text);
  };
}

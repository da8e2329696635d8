// Errors that nobody can catch any more become a log line (HTML, 8.1.4.6 "report an exception"), unless the program
// listens for them and calls preventDefault. They never change the outcome.

const labels = {
  __proto__: null,
  uncaught: "Uncaught ",
  reported: "Uncaught ",
  unhandledrejection: "Unhandled rejection: ",
};

/**
 * Returns report(kind, reason, promise) with kind "uncaught", "reported" (by the program itself), "unhandledrejection"
 * or "rejectionhandled", which never throws, and setHandleReport, by which the part "events" is asked first once it is
 * there.
 */
export function makeReport({ native, inspect }) {
  let handle = () => false;

  function handled(kind, reason, promise) {
    try {
      return handle(kind, reason, promise);
    } catch {
      return false; // the stack is nearly exhausted
    }
  }

  function report(kind, reason, promise) {
    if (handled(kind, reason, promise) || labels[kind] === undefined) return;
    let text;
    try {
      text = inspect(reason);
    } catch {
      text = "<a value that cannot be shown>"; // the stack is nearly exhausted
    }
    native.log("error", labels[kind] + text);
  }

  return { __proto__: null, report, setHandleReport: (f) => { handle = f; } };
}

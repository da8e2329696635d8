// What becomes of errors that nobody caught while the program listens for them: "report an exception" (HTML, 8.1.4.6) and
// "notify about rejected promises" (8.1.4.7). The core calls handle() before it writes a log line.

export function makeReporting(core, target) {
  const { global, need } = core;
  const { SafeWeakSet, weakSetAdd: setAdd, weakSetDelete: setDelete, weakSetHas: setHas } = core;
  const told = new SafeWeakSet(); // promises whose rejection was told and had no handler
  let reporting = false; // 8.1.4.6 "in error reporting mode"

  // "name (file:line:column)" or "file:line:column" of the topmost frame.
  function placeOf(error) {
    const place = { __proto__: null, filename: "", lineno: 0, colno: 0 };
    if (!isError(error)) return place;
    const found = core.regexpExec(/\n    at (?:.* \()?([^\n()]*):(\d+):(\d+)\)?(?:\n|$)/, core.stackOf(error) ?? "");
    if (found !== null) {
      place.filename = found[1];
      place.lineno = +found[2];
      place.colno = +found[3];
    }
    return place;
  }

  const isError = (value) => core.isObject(value) && core.native.classOf(value) === "Error";

  // A value that is no error has the place where it was reported, if the program did it.
  function errorInit(kind, error) {
    const place = placeOf(kind === "reported" && !isError(error) ? new core.SafeTypeError("") : error);
    let text;
    try {
      text = `Uncaught ${isError(error) ? error : core.inspect(error)}`;
    } catch {
      text = "Uncaught exception";
    }
    return { __proto__: null, cancelable: true, error, message: text, ...place };
  }

  // True when the program has dealt with it.
  function handleError(kind, error) {
    if (reporting || !target.listens(global, "error")) return false;
    reporting = true;
    try {
      return !target.fire(global, need("kinds").ErrorEvent, "error", errorInit(kind, error));
    } finally {
      reporting = false;
    }
  }

  function handleRejection(promise, reason) {
    setAdd(told, promise);
    if (!target.listens(global, "unhandledrejection")) return false;
    return !target.fire(global, need("kinds").PromiseRejectionEvent, "unhandledrejection", { __proto__: null, cancelable: true, promise, reason });
  }

  function handleLate(promise, reason) {
    if (!setHas(told, promise)) return;
    setDelete(told, promise);
    target.fire(global, need("kinds").PromiseRejectionEvent, "rejectionhandled", { __proto__: null, promise, reason });
  }

  return function handle(kind, reason, promise) {
    if (kind === "uncaught" || kind === "reported") return handleError(kind, reason);
    if (kind === "unhandledrejection") return handleRejection(promise, reason);
    handleLate(promise, reason);
    return true;
  };
}

// queueMicrotask (HTML, 8.7 "Microtask queuing").

import { checkGlobal, defineOperations } from "./global.js";
import { apply, SafeTypeError } from "./primordials.js";
import { requireArguments } from "./webidl.js";

// An await reaches the engine's own promise machinery only: nothing that the guest can replace.
async function runLater(callback, report) {
  await undefined;
  try {
    apply(callback, undefined, []);
  } catch (error) {
    report("uncaught", error);
  }
}

/** Installs queueMicrotask. What a callback throws goes to report. */
export function installMicrotask(report) {
  defineOperations({
    queueMicrotask(callback) {
      checkGlobal(this);
      requireArguments("queueMicrotask", arguments.length, 1);
      if (typeof callback !== "function") {
        throw new SafeTypeError("Failed to execute 'queueMicrotask': parameter 1 is not of type 'Function'.");
      }
      runLater(callback, report);
    },
  });
}

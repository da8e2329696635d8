// setTimeout and its kin (HTML, 8.6 "Timers"). The host keeps the clock and the order; here are the callbacks.
// Not done: strings of code as handlers (they are a TypeError), and the 4 ms that browsers add to nested timers.

import { defineOperations } from "./global.js";
import { apply, global, mapDelete, mapGet, mapHas, mapSet, max, SafeMap, SafeTypeError } from "./primordials.js";
import { requireArguments, toLong } from "./webidl.js";

/** Installs the four operations and returns fire(id, last), by which the host runs a timer that is due. */
export function installTimers(native, report) {
  const active = new SafeMap();

  function start(operation, given, handler, timeout, args, repeat) {
    requireArguments(operation, given, 1);
    if (typeof handler !== "function") {
      throw new SafeTypeError(
        `${operation}: the handler must be a function; strings of code are not supported, pass () => { … } instead`,
      );
    }
    const id = native.timerStart(max(0, toLong(timeout)), repeat);
    mapSet(active, id, { __proto__: null, handler, args });
    return id;
  }

  function stop(handle) {
    const id = toLong(handle);
    if (mapDelete(active, id)) native.timerStop(id);
  }

  // HTML: clearTimeout and clearInterval are interchangeable.
  defineOperations({
    setTimeout(handler, timeout = 0, ...args) {
      return start("setTimeout", arguments.length, handler, timeout, args, false);
    },
    setInterval(handler, timeout = 0, ...args) {
      return start("setInterval", arguments.length, handler, timeout, args, true);
    },
    clearTimeout(id = 0) {
      stop(id);
    },
    clearInterval(id = 0) {
      stop(id);
    },
  });

  return function fire(id, last) {
    if (!mapHas(active, id)) return;
    const { handler, args } = mapGet(active, id);
    if (last) mapDelete(active, id);
    try {
      apply(handler, global, args);
    } catch (error) {
      report("uncaught", error);
    }
  };
}

// setTimeout and its kin (HTML, 8.6 "Timers"). The host keeps the clock and the order; here are the callbacks.
// Not done: the 4 ms that browsers add to nested timers.

import { checkGlobal, defineOperations } from "./global.js";
import { apply, evaluate, global, mapDelete, mapGet, mapHas, mapSet, max, SafeMap } from "./primordials.js";
import { requireArguments, toDOMString, toLong } from "./webidl.js";

/**
 * Installs the four operations and returns fire(id, last), by which the host runs a timer that is due, and
 * startTimer(handler, milliseconds) and stopTimer(id) for other parts of the library.
 */
export function installTimers(native, report) {
  const active = new SafeMap();

  function start(operation, given, handler, timeout, args, repeat) {
    requireArguments(operation, given, 1);
    const code = typeof handler === "function" ? undefined : toDOMString(handler);
    return begin(code === undefined ? handler : () => evaluate(code), max(0, toLong(timeout)), args, repeat);
  }

  function begin(handler, ms, args, repeat) {
    const id = native.timerStart(ms, repeat);
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
      checkGlobal(this);
      return start("setTimeout", arguments.length, handler, timeout, args, false);
    },
    setInterval(handler, timeout = 0, ...args) {
      checkGlobal(this);
      return start("setInterval", arguments.length, handler, timeout, args, true);
    },
    clearTimeout(id = 0) {
      checkGlobal(this);
      stop(id);
    },
    clearInterval(id = 0) {
      checkGlobal(this);
      stop(id);
    },
  });

  function fire(id, last) {
    if (!mapHas(active, id)) return;
    const { handler, args } = mapGet(active, id);
    if (last) mapDelete(active, id);
    try {
      apply(handler, global, args);
    } catch (error) {
      report("uncaught", error);
    }
  }

  return {
    __proto__: null,
    fire,
    startTimer: (handler, ms) => begin(handler, ms, [], false),
    stopTimer: stop,
  };
}

// The global as an EventTarget (DOM, 2.7, https://dom.spec.whatwg.org/#interface-eventtarget, and HTML, 8.1.8.2
// WindowEventHandlers and 8.1.4.6 reportError), as far as it must be there before anything is used. What the functions
// do is in the part "events".

import { checkGlobal, defineAttribute, defineOperations } from "./global.js";
import { define, defineProperty, getPrototypeOf, global, Identity, SafeTypeError, toStringTag } from "./primordials.js";
import { requireArguments } from "./webidl.js";

// The mark of an EventTarget, which holds what the part "events" knows of it.
class Target extends Identity {
  #state = undefined;

  /** The state of a target, made when it is first asked for; undefined for what is no target. */
  static stateOf(target, make) {
    if (typeof target !== "object" || target === null || !(#state in target)) return undefined;
    return target.#state ?? (target.#state = make());
  }
}

/** Defines EventTarget, whose prototype is behind the global, and returns it. */
export function installEventTarget(core) {
  const events = () => core.need("events");
  const { EventTarget } = {
    EventTarget: function () {
      if (new.target === undefined) throw new SafeTypeError("Class constructor EventTarget cannot be invoked without 'new'");
      core.native.brand(this); // a platform object, which no structured clone takes
      new Target(this);
    },
  };
  // The engine made the prototypes behind the global, which cannot be changed any more.
  const behind = getPrototypeOf(global);
  const prototype = getPrototypeOf(behind);
  delete behind.constructor;
  define(prototype, "constructor", EventTarget, false);
  const methods = {
    addEventListener(type, callback, options = undefined) {
      events().addEventListener(this, arguments, options);
    },
    removeEventListener(type, callback, options = undefined) {
      events().removeEventListener(this, arguments, options);
    },
    dispatchEvent(event) {
      return events().dispatchEvent(this, arguments);
    },
  };
  for (const name in methods) define(prototype, name, methods[name]);
  defineProperty(prototype, toStringTag, { __proto__: null, value: "EventTarget", configurable: true });
  defineProperty(EventTarget, "prototype", { __proto__: null, value: prototype, writable: false });
  define(global, "EventTarget", EventTarget, false);
  core.native.brand(prototype);
  core.targetState = Target.stateOf;
  installHandlers(core, events);
  return EventTarget;
}

function installHandlers({ report }, events) {
  const types = ["error", "unhandledrejection", "rejectionhandled"];
  for (let i = 0; i < types.length; i++) {
    defineAttribute(`on${types[i]}`, () => events().getHandler(global, types[i]), (value) => events().setHandler(global, types[i], value));
  }
  defineOperations({
    reportError(e) {
      checkGlobal(this);
      requireArguments("reportError", arguments.length, 1);
      report("reported", e);
    },
  });
}

// Event and CustomEvent (DOM, 2.2 and 2.4, https://dom.spec.whatwg.org/#interface-event).

const NONE = 0;
const CAPTURING_PHASE = 1;
const AT_TARGET = 2;
const BUBBLING_PHASE = 3;

export function makeEvent(core) {
  const { defineProperty, finish, getOwnPropertyDescriptor, requireArguments, toBoolean, toDictionary, toDOMString } = core;

  const eventInit = [["bubbles", toBoolean, false], ["cancelable", toBoolean, false], ["composed", toBoolean, false]];
  const anyValue = (value) => value;

  // The internals of events, for dispatch and for the subclasses.
  const internals = { __proto__: null };
  let trusted = false; // the next event is one of the runtime

  class Event {
    #type;
    #bubbles;
    #cancelable;
    #composed;
    #trusted;
    #timeStamp = core.now();
    #target = null;
    #currentTarget = null;
    #phase = NONE;
    #initialized = true;
    #dispatching = false;
    #stop = false;
    #stopImmediate = false;
    #canceled = false;
    #passive = false;
    constructor(type, eventInitDict = undefined) {
      requireArguments("Event", arguments.length, 1);
      this.#type = toDOMString(type);
      const init = toDictionary(eventInitDict, eventInit, "The init dictionary");
      this.#bubbles = init.bubbles;
      this.#cancelable = init.cancelable;
      this.#composed = init.composed;
      this.#trusted = trusted;
      trusted = false;
      defineProperty(this, "isTrusted", isTrustedProperty);
    }

    get type() { return this.#type; }
    get target() { return this.#target; }
    get srcElement() { return this.#target; }
    get currentTarget() { return this.#currentTarget; }
    composedPath() { return this.#currentTarget === null ? [] : [this.#currentTarget]; }
    get eventPhase() { return this.#phase; }
    stopPropagation() { this.#stop = true; }
    get cancelBubble() { return this.#stop; }
    set cancelBubble(value) { if (value) this.#stop = true; else this.#type; }
    stopImmediatePropagation() { this.#stop = this.#stopImmediate = true; }
    get bubbles() { return this.#bubbles; }
    get cancelable() { return this.#cancelable; }
    get returnValue() { return !this.#canceled; }
    set returnValue(value) { if (!value) this.#cancel(); else this.#type; }
    preventDefault() { this.#cancel(); }
    get defaultPrevented() { return this.#canceled; }
    get composed() { return this.#composed; }
    get timeStamp() { return this.#timeStamp; }
    initEvent(type, bubbles = false, cancelable = false) {
      requireArguments("initEvent' on 'Event", arguments.length, 1);
      internals.initialize(this, toDOMString(type), !!bubbles, !!cancelable);
    }

    #cancel() {
      if (this.#cancelable && !this.#passive) this.#canceled = true;
    }

    static {
      // [LegacyUnforgeable]: the same accessor as an own property of every event.
      const { get } = getOwnPropertyDescriptor({ get isTrusted() { return this.#trusted; } }, "isTrusted");
      internals.isTrustedProperty = { __proto__: null, get, set: undefined, enumerable: true, configurable: false };
      internals.isEvent = (value) => typeof value === "object" && value !== null && #type in value;
      internals.isBusy = (event) => event.#dispatching || !event.#initialized;
      internals.trust = (event, value) => { event.#trusted = value; };
      // 2.2 "initialize": false while the event is being dispatched.
      internals.initialize = (event, type, bubbles, cancelable) => {
        if (event.#dispatching) return false;
        event.#initialized = true;
        event.#stop = event.#stopImmediate = event.#canceled = false;
        event.#trusted = false;
        event.#target = null;
        event.#type = type;
        event.#bubbles = bubbles;
        event.#cancelable = cancelable;
        return true;
      };
      internals.start = (event, target) => {
        event.#dispatching = true;
        event.#target = event.#currentTarget = target;
        event.#phase = AT_TARGET;
      };
      internals.finish = (event) => {
        event.#phase = NONE;
        event.#currentTarget = null;
        event.#dispatching = event.#stop = event.#stopImmediate = false;
        return !event.#canceled;
      };
      internals.isStopped = (event) => event.#stop;
      internals.isStoppedNow = (event) => event.#stopImmediate;
      internals.typeOf = (event) => event.#type;
      internals.setPassive = (event, value) => { event.#passive = value; };
      internals.cancel = (event) => event.#cancel();
    }
  }
  const { isTrustedProperty } = internals;
  finish(Event, { __proto__: null, name: "Event", constants: { __proto__: null, NONE, CAPTURING_PHASE, AT_TARGET, BUBBLING_PHASE } });

  /** Makes an event whose isTrusted is true. */
  internals.createEvent = (Class, type, init) => {
    trusted = true;
    try {
      return new Class(type, init);
    } finally {
      trusted = false;
    }
  };

  // Dictionaries of subclasses: EventInit is read by the constructor of Event before, as inherited members come first.
  const customInit = [["detail", anyValue, null]];

  class CustomEvent extends Event {
    #detail;
    constructor(type, eventInitDict = undefined) {
      requireArguments("CustomEvent", arguments.length, 1);
      super(type, eventInitDict);
      this.#detail = toDictionary(eventInitDict, customInit, "The init dictionary").detail;
    }
    get detail() { return this.#detail; }
    initCustomEvent(type, bubbles = false, cancelable = false, detail = null) {
      this.#detail;
      requireArguments("initCustomEvent' on 'CustomEvent", arguments.length, 1);
      if (internals.initialize(this, toDOMString(type), !!bubbles, !!cancelable)) this.#detail = detail;
    }
  }
  finish(CustomEvent, { __proto__: null, name: "CustomEvent" });

  return { __proto__: null, Event, CustomEvent, eventInternals: internals };
}

// EventTarget (DOM, 2.7, https://dom.spec.whatwg.org/#interface-eventtarget) without a tree: the path of an event is its
// target alone. Event handler attributes (HTML, 8.1.8.1, https://html.spec.whatwg.org/#event-handlers).

export function makeTarget(core, { eventInternals: internals }) {
  const { apply, defineProperty, global, isObject, list, makeException, need, push, requireArguments, SafeTypeError, targetState, toBoolean, toDictionary, toDOMString } = core;
  const { createEvent, isEvent } = internals;

  // What the runtime knows of a target.
  class State {
    listeners = list(); // replaced, never changed while it is walked
    handlers = undefined; // name of an event to its handler
    onChange = undefined; // called when listeners come or go
  }

  const makeState = () => new State();
  const globalState = makeState();

  // Web IDL, 3.7.7: undefined and null stand for the global.
  const orGlobal = (target) => target ?? global;

  function stateOf(target) {
    const state = target === global ? globalState : targetState(target, makeState);
    if (state === undefined) throw new SafeTypeError("Illegal invocation: this is not an EventTarget.");
    return state;
  }

  // 2.7 "flatten": the union of a dictionary and a boolean.
  const toSignal = (value) => {
    if (!need("abort").isSignal(value)) throw new SafeTypeError("The option 'signal' is not an AbortSignal.");
    return value;
  };
  const removeOptions = [["capture", toBoolean, false]];
  const addOptions = [["capture", toBoolean, false], ["once", toBoolean, false], ["passive", toBoolean, false], ["signal", toSignal]];
  const isDictionary = (options) => options === undefined || options === null || isObject(options);
  const flatten = (options, members) =>
    isDictionary(options) ? toDictionary(options, members, "The options") : { __proto__: null, capture: !!options };

  function toListener(callback) {
    if (callback === undefined || callback === null) return null;
    if (!isObject(callback)) throw new SafeTypeError("The listener is neither a function nor an object.");
    return callback;
  }

  function find(state, type, callback, capture) {
    const { listeners } = state;
    for (let i = 0; i < listeners.length; i++) {
      const l = listeners[i];
      if (l.type === type && l.callback === callback && l.capture === capture) return i;
    }
    return -1;
  }

  function append(state, listener) {
    const { listeners } = state;
    const next = list();
    for (let i = 0; i < listeners.length; i++) push(next, listeners[i]);
    push(next, listener);
    state.listeners = next;
    state.onChange?.();
  }

  function remove(state, at) {
    const { listeners } = state;
    const next = list();
    for (let i = 0; i < listeners.length; i++) if (i !== at) push(next, listeners[i]);
    listeners[at].removed = true;
    state.listeners = next;
    state.onChange?.();
  }

  function addEventListener(self, args, options) {
    const target = orGlobal(self);
    const state = stateOf(target);
    requireArguments("addEventListener' on 'EventTarget", args.length, 2);
    const type = toDOMString(args[0]);
    const callback = toListener(args[1]);
    const { capture, once, passive, signal } = flatten(options, addOptions);
    if (signal !== undefined && signal.aborted) return;
    if (callback === null || find(state, type, callback, capture) >= 0) return;
    const listener = { __proto__: null, type, callback, capture, once: once === true, passive: passive === true, removed: false, handler: false };
    append(state, listener);
    if (signal !== undefined) need("abort").addAbortAlgorithm(signal, () => drop(state, listener));
  }

  function drop(state, listener) {
    const { listeners } = state;
    for (let i = 0; i < listeners.length; i++) {
      if (listeners[i] === listener) return remove(state, i);
    }
  }

  function removeEventListener(self, args, options) {
    const state = stateOf(orGlobal(self));
    requireArguments("removeEventListener' on 'EventTarget", args.length, 2);
    const type = toDOMString(args[0]);
    const callback = toListener(args[1]);
    const { capture } = flatten(options, removeOptions);
    const at = find(state, type, callback, capture);
    if (at >= 0) remove(state, at);
  }

  function dispatchEvent(self, args) {
    const target = orGlobal(self);
    const state = stateOf(target);
    requireArguments("dispatchEvent' on 'EventTarget", args.length, 1);
    const event = args[0];
    if (!isEvent(event)) throw new SafeTypeError("The argument of dispatchEvent is not an Event.");
    if (internals.isBusy(event)) throw makeException("The event is already being dispatched.", "InvalidStateError");
    internals.trust(event, false);
    return dispatch(target, state, event);
  }

  // 2.9 "dispatch" for a path of one: the capturing listeners come first.
  function dispatch(target, state, event) {
    internals.start(event, target);
    invoke(target, state, event, true);
    invoke(target, state, event, false);
    return internals.finish(event);
  }

  function invoke(target, state, event, capture) {
    if (internals.isStopped(event)) return;
    const type = internals.typeOf(event);
    const { listeners } = state;
    for (let i = 0; i < listeners.length; i++) {
      const listener = listeners[i];
      if (listener.removed || listener.type !== type || listener.capture !== capture) continue;
      if (listener.once) drop(state, listener);
      internals.setPassive(event, listener.passive);
      callListener(target, listener, event);
      internals.setPassive(event, false);
      if (internals.isStoppedNow(event)) return;
    }
  }

  function callListener(target, listener, event) {
    try {
      if (listener.handler) return callHandler(target, listener.callback(), event);
      const { callback } = listener;
      if (typeof callback === "function") return void apply(callback, target, [event]);
      const { handleEvent } = callback;
      if (typeof handleEvent !== "function") throw new SafeTypeError("The listener's handleEvent is not a function.");
      apply(handleEvent, callback, [event]);
    } catch (error) {
      core.report("uncaught", error);
    }
  }

  // ---- event handler attributes

  // HTML, 8.1.8.1 "the event handler processing algorithm".
  function callHandler(target, handler, event) {
    if (typeof handler !== "function") return;
    const isGlobalError = target === global && internals.typeOf(event) === "error" && internals.errorArguments?.(event);
    if (isGlobalError) {
      if (apply(handler, target, isGlobalError) === true) internals.cancel(event);
    } else if (apply(handler, target, [event]) === false) {
      internals.cancel(event);
    }
  }

  function getHandler(target, type) {
    return stateOf(target).handlers?.[type]?.value ?? null;
  }

  // The handler keeps its place among the listeners until it is set to null.
  function setHandler(target, type, value) {
    const state = stateOf(target);
    state.handlers ??= { __proto__: null };
    const given = isObject(value) ? value : null; // [LegacyTreatNonObjectAsNull]
    const known = state.handlers[type];
    if (known !== undefined) {
      known.value = given;
      if (given === null) {
        drop(state, known.listener);
        delete state.handlers[type];
      }
      return;
    }
    if (given === null) return;
    const handler = { __proto__: null, value: given, listener: undefined };
    handler.listener = {
      __proto__: null, type, callback: () => handler.value, capture: false, once: false, passive: false, removed: false, handler: true,
    };
    state.handlers[type] = handler;
    append(state, handler.listener);
  }

  /** Defines attributes `on` + type on the prototype of a class; check(object) throws on a wrong this. */
  function handlerAttributes(Class, types, check = stateOf) {
    for (let i = 0; i < types.length; i++) {
      const type = types[i];
      const { get, set } = accessors(type, check);
      defineProperty(Class.prototype, `on${type}`, { __proto__: null, get, set, enumerable: true, configurable: true });
    }
  }

  function accessors(type, check) {
    const name = `on${type}`;
    return core.getOwnPropertyDescriptor({
      get [name]() {
        check(this);
        return getHandler(this, type);
      },
      set [name](value) {
        check(this);
        setHandler(this, type, value);
      },
    }, name);
  }

  /** Dispatches an event of the runtime at a target; false when it was canceled. */
  const fireEvent = (target, event) => dispatch(target, stateOf(target), event);
  const fire = (target, Class, type, init) => fireEvent(target, createEvent(Class, type, init));

  /** True when a listener or a handler of that type is there. */
  function listens(target, type) {
    const { listeners } = stateOf(target);
    for (let i = 0; i < listeners.length; i++) if (listeners[i].type === type) return true;
    return false;
  }

  return {
    __proto__: null,
    addEventListener, removeEventListener, dispatchEvent, fireEvent, fire, listens, getHandler, setHandler, handlerAttributes,
    watchListeners: (target, onChange) => { stateOf(target).onChange = onChange; },
  };
}

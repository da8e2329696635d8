// AbortController and AbortSignal (DOM, 3, https://dom.spec.whatwg.org/#aborting-ongoing-activities).

export default function abort(core) {
  const target = core.need("events");
  const { Event } = target;
  const { EventTarget, finish, illegalConstructor, makeException, requireArguments, toEnforced, toSequence, SafeTypeError } = core;
  const SafeWeakRef = WeakRef;
  const SafeSet = Set;
  const { add, delete: remove } = Set.prototype;
  const setAdd = core.uncurry(add);
  const setDelete = core.uncurry(remove);
  const token = {}; // lets the constructor through

  // What the runtime knows of a signal. Sources are held by their dependents; a dependent is held by its sources weakly,
  // and strongly while somebody would learn of its abort (3.2.2, "garbage collection").
  class State {
    aborted = false;
    reason = undefined;
    algorithms = [];
    dependent = false;
    sources = [];
    dependents = []; // WeakRef
    kept = new SafeSet(); // dependents with listeners
    pruneAt = 16;
  }
  let stateOf, isSignal;

  class AbortSignal extends EventTarget {
    #state = new State();
    constructor() {
      if (arguments[0] !== token) throw illegalConstructor();
      super();
    }
    static abort(reason = undefined) {
      const signal = createSignal();
      const state = stateOf(signal);
      state.aborted = true;
      state.reason = orAbortError(reason);
      return signal;
    }
    static any(signals) {
      requireArguments("any' on 'AbortSignal", arguments.length, 1);
      return combine(toSequence(signals, toSignal, "The argument of AbortSignal.any"));
    }
    static timeout(milliseconds) {
      requireArguments("timeout' on 'AbortSignal", arguments.length, 1);
      const ms = toEnforced(milliseconds, 0, Number.MAX_SAFE_INTEGER, "The time");
      const signal = createSignal();
      core.startTimer(() => signalAbort(signal, makeException("The operation timed out.", "TimeoutError")), ms);
      return signal;
    }
    get aborted() { return this.#state.aborted; }
    get reason() { return this.#state.reason; }
    throwIfAborted() {
      if (this.#state.aborted) throw this.#state.reason;
    }
    static {
      stateOf = (signal) => signal.#state;
      isSignal = (value) => typeof value === "object" && value !== null && #state in value;
    }
  }
  finish(AbortSignal, { __proto__: null, name: "AbortSignal" });
  target.handlerAttributes(AbortSignal, ["abort"], (signal) => stateOf(signal));

  function toSignal(value) {
    if (!isSignal(value)) throw new SafeTypeError("A value of the sequence is not an AbortSignal.");
    return value;
  }

  const orAbortError = (reason) => (reason === undefined ? makeException("The operation was aborted.", "AbortError") : reason);

  function createSignal() {
    return new AbortSignal(token);
  }

  // 3.2 "create a dependent abort signal".
  function combine(signals) {
    const result = createSignal();
    const state = stateOf(result);
    for (let i = 0; i < signals.length; i++) {
      const source = stateOf(signals[i]);
      if (!source.aborted) continue;
      state.aborted = true;
      state.reason = source.reason;
      return result;
    }
    state.dependent = true;
    for (let i = 0; i < signals.length; i++) {
      const source = stateOf(signals[i]);
      if (!source.dependent) link(signals[i], state, result);
      else for (let k = 0; k < source.sources.length; k++) link(source.sources[k], state, result);
    }
    target.watchListeners(result, () => keep(result, state));
    return result;
  }

  function link(source, state, dependent) {
    if (state.sources.includes(source)) return;
    state.sources[state.sources.length] = source;
    const { dependents } = stateOf(source);
    dependents[dependents.length] = new SafeWeakRef(dependent);
    prune(stateOf(source));
  }

  function prune(source) {
    if (source.dependents.length < source.pruneAt) return;
    const alive = [];
    for (let i = 0; i < source.dependents.length; i++) {
      if (core.weakRefDeref(source.dependents[i]) !== undefined) alive[alive.length] = source.dependents[i];
    }
    source.dependents = alive;
    source.pruneAt = 2 * alive.length + 16;
  }

  function keep(signal, state) {
    const wanted = !state.aborted && (state.algorithms.length > 0 || target.listens(signal, "abort"));
    for (let i = 0; i < state.sources.length; i++) {
      const { kept } = stateOf(state.sources[i]);
      if (wanted) setAdd(kept, signal);
      else setDelete(kept, signal);
    }
  }

  // 3.2 "signal abort".
  function signalAbort(signal, reason) {
    const state = stateOf(signal);
    if (state.aborted) return;
    state.aborted = true;
    state.reason = orAbortError(reason);
    const toAbort = [];
    for (let i = 0; i < state.dependents.length; i++) {
      const dependent = core.weakRefDeref(state.dependents[i]);
      if (dependent === undefined || stateOf(dependent).aborted) continue;
      stateOf(dependent).aborted = true;
      stateOf(dependent).reason = state.reason;
      toAbort[toAbort.length] = dependent;
    }
    runAbortSteps(signal, state);
    for (let i = 0; i < toAbort.length; i++) runAbortSteps(toAbort[i], stateOf(toAbort[i]));
    state.dependents = [];
    state.kept = new SafeSet();
  }

  function runAbortSteps(signal, state) {
    const { algorithms } = state;
    state.algorithms = [];
    for (let i = 0; i < algorithms.length; i++) {
      try {
        algorithms[i]();
      } catch (error) {
        core.report("uncaught", error);
      }
    }
    target.fire(signal, Event, "abort");
  }

  function addAbortAlgorithm(signal, algorithm) {
    const state = stateOf(signal);
    if (state.aborted) return;
    state.algorithms[state.algorithms.length] = algorithm;
    if (state.dependent) keep(signal, state);
  }

  function removeAbortAlgorithm(signal, algorithm) {
    const state = stateOf(signal);
    const rest = [];
    for (let i = 0; i < state.algorithms.length; i++) {
      if (state.algorithms[i] !== algorithm) rest[rest.length] = state.algorithms[i];
    }
    state.algorithms = rest;
    if (state.dependent) keep(signal, state);
  }

  class AbortController {
    #signal = createSignal();
    get signal() { return this.#signal; }
    abort(reason = undefined) { signalAbort(this.#signal, reason); }
  }
  finish(AbortController, { __proto__: null, name: "AbortController" });

  return {
    __proto__: null,
    AbortController, AbortSignal, isSignal, createSignal, signalAbort, addAbortAlgorithm, removeAbortAlgorithm,
    combineSignals: combine,
    isAborted: (signal) => stateOf(signal).aborted,
    signalReason: (signal) => stateOf(signal).reason,
  };
}

// AbortController and AbortSignal (DOM, 3, https://dom.spec.whatwg.org/#aborting-ongoing-activities).

export default function abort(core) {
  const target = core.need("events");
  const { Event } = target;
  const { EventTarget, finish, illegalConstructor, makeException, requireArguments, toEnforced, toSequence, SafeTypeError } = core;
  const { list, push, SafeSet, SafeWeakRef, setAdd, setDelete } = core;
  const token = {}; // lets the constructor through

  // What the runtime knows of a signal. Sources are held by their dependents; a dependent is held by its sources weakly,
  // and strongly while somebody would learn of its abort (3.2.2, "garbage collection").
  class State {
    aborted = false;
    reason = undefined;
    algorithms = list();
    dependent = false;
    sources = list();
    dependents = list(); // WeakRef
    kept = new SafeSet(); // dependents with listeners
    pruneAt = 16;
  }
  let stateOf, isSignal;

  class AbortSignal extends EventTarget {
    #state = new State();
    constructor(key = undefined) {
      if (key !== token) throw illegalConstructor();
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
      const ms = toEnforced(milliseconds, 0, 2 ** 53 - 1, "The time");
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
    for (let i = 0; i < state.sources.length; i++) if (state.sources[i] === source) return;
    push(state.sources, source);
    const { dependents } = stateOf(source);
    push(dependents, new SafeWeakRef(dependent));
    prune(stateOf(source));
  }

  function prune(source) {
    if (source.dependents.length < source.pruneAt) return;
    const alive = list();
    for (let i = 0; i < source.dependents.length; i++) {
      if (core.weakRefDeref(source.dependents[i]) !== undefined) push(alive, source.dependents[i]);
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
    const toAbort = list();
    for (let i = 0; i < state.dependents.length; i++) {
      const dependent = core.weakRefDeref(state.dependents[i]);
      if (dependent === undefined || stateOf(dependent).aborted) continue;
      stateOf(dependent).aborted = true;
      stateOf(dependent).reason = state.reason;
      push(toAbort, dependent);
    }
    runAbortSteps(signal, state);
    for (let i = 0; i < toAbort.length; i++) runAbortSteps(toAbort[i], stateOf(toAbort[i]));
    state.dependents = list();
    state.kept = new SafeSet();
  }

  function runAbortSteps(signal, state) {
    const { algorithms } = state;
    state.algorithms = list();
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
    push(state.algorithms, algorithm);
    if (state.dependent) keep(signal, state);
  }

  function removeAbortAlgorithm(signal, algorithm) {
    const state = stateOf(signal);
    const rest = list();
    for (let i = 0; i < state.algorithms.length; i++) {
      if (state.algorithms[i] !== algorithm) push(rest, state.algorithms[i]);
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

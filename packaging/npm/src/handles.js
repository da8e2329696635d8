// What a retained program left for its host: functions, iterators and streams that look like their own kind here. Each is
// released when it is disposed of, and as a last resort when it is garbage.

import { ExecutorError } from "./errors.js";
import { handleTags } from "./values/classes.js";

/** By the object that stands for a handle: invoke(args, options) of it. */
const held = new WeakMap();

const forgotten = new FinalizationRegistry((release) => release());

/**
 * The handles of one retained program, whose session stays for them. call(id, method, args, options) sends a call before it
 * returns, unless an argument has to be read first, and resolves to its settled outcome. Gives what users get to see of it,
 * reader() → the maker of the objects of one value, and learn(told), which takes what an outcome says: how long the program
 * stays at most, or by its silence that it has ended.
 */
export function retain(session, call, told) {
  const live = new Set(); // ids
  const calls = new Map(); // those under way, which may give new handles: how many, by id
  const unwanted = new Set(); // ids to give up after them
  let gone = []; // ids to tell the service of
  let timer;

  const { id: all, idleMs, ttlMs } = told;
  let until = Date.now() + ttlMs; // when it ends at the latest
  const learn = (news) => (news ? (until = Date.now() + news.ttlMs) : live.clear());
  const retained = disposable({ id: all, idleMs, ttlMs }, () => {
    gone = [all];
    tell();
    end();
  });

  function end() {
    clearTimeout(timer);
    live.clear();
    session.keep(retained, false);
  }

  function endIfUnused() {
    if (live.size + calls.size === 0) end();
  }

  // With nothing under way it ends by itself after a while.
  function rest() {
    clearTimeout(timer);
    timer = setTimeout(end, Math.min(idleMs, until - Date.now()));
    timer.unref?.();
  }

  function tell() {
    while (gone.length > 0) session.release(gone.splice(0, 1000));
    endIfUnused();
  }

  // Handles of one turn leave together, those that are being called after their calls.
  function release(id) {
    if (calls.has(id)) return unwanted.add(id);
    unwanted.delete(id);
    if (live.delete(id) && gone.push(id) === 1) queueMicrotask(tell);
  }

  async function invoke(id, method, args, options) {
    if (unwanted.has(id)) throw new ExecutorError("handle_unknown", "it was disposed of");
    calls.set(id, (calls.get(id) ?? 0) + 1);
    clearTimeout(timer);
    try {
      return await call(id, method, args, options);
    } finally {
      const left = calls.get(id) - 1;
      if (left > 0) calls.set(id, left);
      else calls.delete(id);
      if (calls.size === 0) rest();
      if (unwanted.has(id)) release(id);
      endIfUnused();
    }
  }

  function make(id, kind) {
    live.add(id);
    const letGo = () => release(id);
    const method = (name) => async (...args) => (await invoke(id, name, args)).value;
    const next = method("next");
    const cancel = method("return");
    let object;
    if (kind === "function") object = method();
    else if (kind === "iterator") object = { next, return: cancel, throw: method("throw"), [Symbol.asyncIterator]: itself };
    else object = streamOf(next, cancel, letGo);
    if (kind !== "stream") disposable(object, letGo);
    held.set(object, (args, options) => invoke(id, undefined, args, options));
    handleTags.set(object, kind === "function" ? id : [id, kind]);
    forgotten.register(object, letGo);
    return object;
  }

  const reader = () => {
    const made = new Map(); // an id stands wherever its object was
    return (id, kind) => made.get(id) ?? made.set(id, make(id, kind)).get(id);
  };

  session.keep(retained, true);
  session.gone.then(end);
  rest();
  return { retained, reader, learn };
}

function disposable(object, value) {
  for (const key of ["dispose", Symbol.dispose]) if (key) Object.defineProperty(object, key, { value });
  return object;
}

/** Calls what an object stands for. */
export function invokeHeld(object, args, options) {
  const invoke = held.get(object);
  if (invoke === undefined) throw new TypeError("it is no handle");
  return invoke(args, options);
}

function itself() {
  return this;
}

// Nothing is asked for before somebody reads.
function streamOf(next, cancel, release) {
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await next();
        if (!done) return controller.enqueue(value);
        controller.close();
      } catch (error) {
        controller.error(error);
      }
      release();
    },
    cancel: (reason) => cancel(reason).finally(release),
  }, { highWaterMark: 0 });
}

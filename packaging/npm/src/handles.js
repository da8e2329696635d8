// What a retained program left for its host: functions, iterators and streams that look like their own kind here. Each is
// released when it is disposed of, and as a last resort when it is garbage.

import { ExecutorError, refuse } from "./errors.js";
import { held } from "./values/classes.js";
import { define } from "./values/walk.js";

const forgotten = new FinalizationRegistry((release) => release());

/**
 * The handles of one retained program, whose session stays for them. call(id, method, args, options) sends a call before it
 * returns, unless an argument has to be read first, and resolves to its settled outcome. Gives what users get to see of it,
 * reader() → the maker of the objects of one value, and learn(told), which takes what an outcome says: how long the program
 * stays at most, or by its silence that it has ended.
 */
export function retain(session, call, told) {
  const live = new Set(); // ids
  let calls = 0; // those under way, which may give new handles
  let gone = []; // ids to tell the service of
  let timer;
  let until = Date.now() + told.ttlMs; // when it ends at the latest

  const learn = (news) => (news ? (until = Date.now() + news.ttlMs) : live.clear());
  const retained = disposable({ ...told }, () => {
    gone = [told.id];
    tell();
    end();
  });

  function end() {
    clearTimeout(timer);
    live.clear();
    session.keep(retained, false);
  }

  function endIfUnused() {
    if (live.size + calls === 0) end();
  }

  // With nothing under way it ends by itself after a while.
  function rest() {
    clearTimeout(timer);
    timer = setTimeout(end, Math.min(told.idleMs, until - Date.now()));
    timer.unref?.();
  }

  function tell() {
    while (gone.length > 0) session.release(gone.splice(0, 1000));
    endIfUnused();
  }

  function make(id, kind) {
    let under = 0; // calls of it that are under way
    let unwanted = false;
    live.add(id);

    // Handles of one turn leave together, those that are being called after their calls.
    function release() {
      unwanted = true;
      if (under === 0 && live.delete(id) && gone.push(id) === 1) queueMicrotask(tell);
    }

    async function invoke(method, args, options) {
      if (unwanted) throw new ExecutorError("handle_unknown", "it was disposed of");
      under++;
      calls++;
      clearTimeout(timer);
      try {
        return await call(id, method, args, options);
      } finally {
        under--;
        calls--;
        if (calls === 0) rest();
        if (unwanted) release();
        endIfUnused();
      }
    }

    const object = objectOf(kind, (method) => async (...args) => (await invoke(method, args)).value, release);
    held.set(object, { tag: kind === "function" ? id : [id, kind], invoke: (args, options) => invoke(undefined, args, options) });
    forgotten.register(object, release);
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

// objectOf makes what looks like its kind. method(name) gives a method of the handle.
function objectOf(kind, method, release) {
  if (kind === "stream") return streamOf(method("next"), method("return"), release);
  return disposable(kind === "function" ? method() : { next: method("next"), return: method("return"), throw: method("throw"), [Symbol.asyncIterator]() { return this; } }, release);
}

function disposable(object, value) {
  for (const key of ["dispose", Symbol.dispose]) if (key) define(object, key, value);
  return object;
}

/** Calls what an object stands for. */
export const invokeHeld = (object, args, options) => (held.get(object) ?? refuse("it is no handle")).invoke(args, options);

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

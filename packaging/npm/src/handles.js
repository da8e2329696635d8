// What a retained program left for its host: functions, iterators and streams that look like their own kind here. Each is
// released when it is disposed of, and as a last resort when it is garbage.

import { handleTags } from "./values/classes.js";

/** By the object that stands for a handle: whose it is, and its id. */
const held = new WeakMap();

const forgotten = new FinalizationRegistry(({ retained, id }) => retained.release(id));

/** The handles of one retained program. Its session stays for them. */
export class Retained {
  #session;
  #invoke;
  #live = new Set(); // ids
  #gone = []; // ids to tell the service of
  #timer;

  /** invoke(retained, id, method, args, options) resolves to the settled outcome. */
  constructor(session, invoke, { id, idleMs, ttlMs }) {
    this.#session = session;
    this.#invoke = invoke;
    Object.assign(this, { id, idleMs, ttlMs });
    session.keep(this, true);
    this.#timer = setTimeout(() => this.#end(), ttlMs);
    this.#timer.unref?.();
  }

  /** Makes the objects of one value. */
  reader() {
    const made = new Map(); // an id stands wherever its object was
    return (id, kind) => made.get(id) ?? made.set(id, this.#make(id, kind)).get(id);
  }

  #make(id, kind) {
    this.#live.add(id);
    const method = (name) => async (...args) => (await this.invoke(id, name, args)).value;
    let object;
    if (kind === "function") object = method();
    else if (kind === "iterator") object = { next: method("next"), return: method("return"), throw: method("throw"), [Symbol.asyncIterator]: itself };
    else object = streamOf(method("next"), method("return"), () => this.release(id));
    if (kind !== "stream") for (const key of ["dispose", Symbol.dispose]) if (key !== undefined) Object.defineProperty(object, key, { value: () => this.release(id) });
    held.set(object, { retained: this, id });
    handleTags.set(object, kind === "function" ? id : [id, kind]);
    forgotten.register(object, { retained: this, id });
    return object;
  }

  invoke(id, method, args, options) {
    return this.#invoke(this, id, method, args, options);
  }

  /** Gives up a handle. Those of one turn leave together. */
  release(id) {
    if (!this.#live.delete(id)) return;
    if (this.#gone.push(id) === 1) queueMicrotask(() => this.#tell());
  }

  /** Gives up all of them, and with them the program. */
  dispose() {
    this.#gone = [this.id];
    this.#tell();
    this.#end();
  }

  #tell() {
    while (this.#gone.length > 0) this.#session.release(this.#gone.splice(0, 1000));
    if (this.#live.size === 0) this.#end();
  }

  #end() {
    clearTimeout(this.#timer);
    this.#live.clear();
    this.#session.keep(this, false);
  }
}

if (Symbol.dispose !== undefined) Retained.prototype[Symbol.dispose] = Retained.prototype.dispose;

/** Whose handle an object stands for, and its id. */
export function heldBy(object) {
  const found = held.get(object);
  if (found === undefined) throw new TypeError("it is no function, iterator or stream of a retained program");
  return found;
}

function itself() {
  return this;
}

// Nothing is asked for before somebody reads.
function streamOf(next, cancel, release) {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await next();
      if (!done) return controller.enqueue(value);
      controller.close();
      release();
    },
    cancel: (reason) => cancel(reason).finally(release),
  }, { highWaterMark: 0 });
}

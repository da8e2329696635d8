// RemoteExecutor: the service as an object with one method. It keeps one connection, makes a new one when that is lost or
// the service drains it, and never sends a program twice.

import { ExecutorError, given } from "./errors.js";
import { Execution, settle } from "./execution.js";
import { invokeHeld, retain } from "./handles.js";
import { Session } from "./session.js";
import { transportOf } from "./transport/index.js";
import { onAbort, persist } from "./wait.js";

const defaults = {
  keepAliveMs: 15_000,
  connectTimeoutMs: 30_000,
  maxSessionAgeMs: 60 * 60_000,
  cancelGraceMs: 10_000,
  maxMessageBytes: 32 << 20,
};

const optionNames = `url token tls webSocket name ${Object.keys(defaults).join(" ")}`;
const requestNames = "code form language name input providers modules network limits retain trace execution fetch onLog onState signal";
const invocationNames = "limits trace execution onLog onState signal";

export class RemoteExecutor {
  #settings;
  #open;
  #session;
  #connecting;
  #sessions = new Set(); // all that have not ended
  #running = new Map(); // by the promise of a call what has it leave: Node warns of a signal that many listen to
  #closing = new AbortController();

  constructor(options) {
    const settings = { ...defaults, ...known(options, optionNames, "option") };
    for (const key of Object.keys(defaults)) {
      if (!(settings[key] > 0)) throw new TypeError(`option ${key} must be a positive number`);
    }
    this.#settings = { ...settings, client: { name: options.name ?? "executord-js", version: "1" } };
    this.#open = transportOf({ ...settings, maxMessageBytes: 2 * settings.maxMessageBytes });
  }

  /** Runs one program; see the type declarations. */
  async execute(asked) {
    const request = known(asked, requestNames, "field");
    if (typeof request.code !== "string") throw new ExecutorError("invalid_code", "code must be a string", { field: "code" });
    return this.#tracked(request.signal, (leave) => this.#execute(request, leave));
  }

  /** Calls a function that a retained program left, as calling it does, with options and all that came of it. */
  async invoke(object, args = [], options = {}) {
    return invokeHeld(object, args, known(options, invocationNames, "option"));
  }

  // run(leave) is told by the signal leave that its caller or this executor gives it up.
  async #tracked(signal, run) {
    if (this.#closing.signal.aborted) throw closed();
    if (signal?.aborted) throw cancelled(signal);
    const leaving = new AbortController();
    const running = run(signal === undefined ? leaving.signal : AbortSignal.any([signal, leaving.signal]));
    this.#running.set(running, leaving);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  // Whoever answered the program's calls answers those of its functions.
  #retain(session, { providers, fetch, onLog, onState }, told) {
    const call = async (leave, request, id, method, args) => {
      let execution = Execution.invoking(request, id, method, args);
      if (execution instanceof Promise) execution = await unless(leave, execution); // others leave in the order of their calls
      if (this.#closing.signal.aborted) throw closed();
      if (session.ended) throw new ExecutorError("handle_unknown", "its session has ended");
      return this.#await(session, execution, leave, (outcome) => {
        kept.learn(outcome.retained);
        return settle(outcome, () => kept);
      });
    };
    const kept = retain(session, (id, method, args, options) => {
      const request = { providers, fetch, onLog, onState, ...options };
      return this.#tracked(request.signal, (leave) => call(leave, request, id, method, args));
    }, told);
    return kept;
  }

  async #execute(request, leave) {
    const execution = await Execution.of(request);
    let session;
    const run = async () => {
      session = undefined;
      session = await unless(leave, this.#connected());
      return this.#await(session, execution, leave, (outcome) => {
        let made;
        try {
          return settle(outcome, (told) => (made = this.#retain(session, request, told)));
        } catch (error) {
          made?.retained.dispose(); // nobody gets its handles
          throw error;
        }
      });
    };
    return persist(run, this.#settings.connectTimeoutMs, leave, ({ type }) => {
      if (type !== "draining" || session === undefined) return false;
      session.retire(); // it was not accepted: another session may take it
      return true;
    });
  }

  // The outcome says how a program that is being cancelled really ended, so it is waited for.
  async #await(session, execution, leave, read) {
    const outcome = session.execute(execution, read);
    let timer;
    let off;
    const gaveUp = new Promise((_, reject) => {
      off = onAbort(leave, () => {
        session.cancel(execution, reasonOf(leave).slice(0, 500));
        timer = setTimeout(() => reject(cancelled(leave)), this.#settings.cancelGraceMs);
      });
    });
    try {
      return await Promise.race([outcome, gaveUp]);
    } finally {
      off();
      clearTimeout(timer);
      outcome.catch(() => {});
    }
  }

  /** Resolves to what the service told of itself, connecting when there is no connection. */
  async server() {
    return (await this.#connected()).opened;
  }

  /** Cancels what runs, waits for it, and ends the connection. Nothing can be executed afterwards. */
  async close() {
    const reason = new ExecutorError("cancelled", "the executor was closed");
    this.#closing.abort(reason);
    for (const leaving of this.#running.values()) leaving.abort(reason);
    await Promise.allSettled(this.#running.keys());
    for (const session of this.#sessions) session.close();
    await Promise.all([...this.#sessions].map((session) => session.gone));
  }

  async #connected() {
    if (this.#closing.signal.aborted) throw closed();
    const session = this.#session;
    if (session && Date.now() - session.began > this.#settings.maxSessionAgeMs) session.retire();
    if (session && !session.ended && !session.retired) return session;
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  #connect() {
    let refused; // what the service said last, which is better than that nobody answered then
    const run = async (signal) => this.#adopt(await Session.open(this.#open, this.#settings, signal));
    return persist(run, this.#settings.connectTimeoutMs, this.#closing.signal, (error) => {
      if (error.type !== "internal") refused = error;
      // Where nobody ever was, nobody is waited for: the address may be wrong.
      return error.retryable && (this.#session ?? refused) !== undefined;
    }).catch((error) => {
      throw refused ?? error;
    });
  }

  #adopt(session) {
    this.#session = session;
    this.#sessions.add(session);
    session.gone.then(() => this.#sessions.delete(session));
    if (this.#closing.signal.aborted) session.close();
    return session;
  }
}

if (Symbol.asyncDispose !== undefined) RemoteExecutor.prototype[Symbol.asyncDispose] = RemoteExecutor.prototype.close;

// known gives the members of object that are set, and throws where one has none of these names.
function known(object, names, what) {
  if (object === null || typeof object !== "object") throw new TypeError(`${what}s are an object`);
  for (const key of Object.keys(object)) {
    if (!names.split(" ").includes(key)) throw new ExecutorError("invalid_params", `there is no ${what} ${key}`, { field: key });
  }
  return given(object);
}

const closed = () => new ExecutorError("draining", "the executor is closed");
const reasonOf = (signal) => String(signal.reason?.message ?? "cancelled by the caller");
const cancelled = (signal) => new ExecutorError("cancelled", reasonOf(signal), { ran: false });

/** promise, or the rejection of a signal that comes first. */
function unless(signal, promise) {
  return new Promise((resolve, reject) => {
    const off = onAbort(signal, () => reject(cancelled(signal)));
    promise.then(resolve, reject).finally(off);
  });
}

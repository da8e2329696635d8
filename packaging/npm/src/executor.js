// RemoteExecutor: the service as an object with one method. It keeps one connection, makes a new one when that is lost or
// the service drains it, and never sends a program twice.

import { ExecutorError, given, refuse } from "./errors.js";
import { executeParams, invokeParams, settle } from "./execution.js";
import { invokeHeld, retain } from "./handles.js";
import { openSession } from "./session.js";
import { transportOf } from "./transport/index.js";
import { keysOf } from "./values/walk.js";
import { cancelled, persist, unless } from "./wait.js";

const defaults = {
  keepAliveMs: 15_000,
  connectTimeoutMs: 30_000,
  maxSessionAgeMs: 60 * 60_000,
  cancelGraceMs: 10_000,
  maxMessageBytes: 32 << 20,
};

const tooLong = 2 ** 31; // for a timer: one of so many milliseconds goes off at once

const optionNames = ["url", "token", "tls", "webSocket", "name", ...keysOf(defaults)];

export class RemoteExecutor {
  #settings;
  #open;
  #session; // the last
  #connecting;
  #sessions = new Set(); // all that have not ended
  #running = new Map(); // by the promise of a call what has it leave: Node warns of a signal that many listen to
  #closing = new AbortController();

  constructor(options) {
    const settings = (this.#settings = { ...defaults, ...given(options) });
    for (const key of keysOf(settings)) {
      if (!optionNames.includes(key)) throw new ExecutorError("invalid_params", `there is no option ${key}`, { field: key });
      if (key in defaults && !(settings[key] > 0 && settings[key] < tooLong)) refuse(`option ${key} must be a positive number below ${tooLong}`);
    }
    this.#open = transportOf(settings);
  }

  /** Runs one program; see the type declarations. What is no field of a request the service refuses. */
  async execute(asked) {
    const request = given(asked);
    let session;
    return this.#tracked(request, async (leave) => {
      const params = await executeParams(request);
      const run = async () => {
        session = undefined;
        session = await unless(leave, this.#connected());
        return session.execute("execute", params, request, leave, (outcome) => {
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
        if (type !== "draining" || !session) return false;
        session.retire(); // it was not accepted: another session may take it
        return true;
      });
    });
  }

  /** Calls a function that a retained program left, as calling it does, with options and all that came of it. */
  async invoke(object, args = [], options) {
    return invokeHeld(object, args, given(options));
  }

  // run(leave) is told by the signal leave that its caller or this executor gives it up.
  async #tracked({ signal }, run) {
    this.#mustBeOpen();
    if (signal?.aborted) throw cancelled(signal);
    const leaving = new AbortController();
    const running = run(signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal);
    this.#running.set(running, leaving);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  #mustBeOpen() {
    if (this.#closing.signal.aborted) throw new ExecutorError("draining", "the executor is closed");
  }

  // Whoever answered the program's calls answers those of its functions.
  #retain(session, { providers, fetch, onLog, onState }, told) {
    const kept = retain(session, (handle, method, args, options) => {
      const asked = { onLog, onState, ...options };
      const request = { ...asked, providers, fetch };
      return this.#tracked(request, async (leave) => {
        let params = invokeParams(asked, handle, method, args);
        if (params instanceof Promise) params = await unless(leave, params); // others leave in the order of their calls
        if (session.ended) throw new ExecutorError("handle_unknown", "its session has ended");
        return session.execute("handle.invoke", params, request, leave, (outcome) => {
          kept.learn(outcome.retained);
          return settle(outcome, () => kept);
        });
      });
    }, told);
    return kept;
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
    await Promise.all([...this.#sessions].map(({ gone }) => gone));
  }

  async #connected() {
    this.#mustBeOpen();
    if (this.#session?.usable()) return this.#session;
    return (this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined)));
  }

  #connect() {
    let refused; // what the service said last, which is better than that nobody answered then
    const { signal } = this.#closing;
    const run = async (deadline) => {
      const session = (this.#session = await openSession(this.#open, this.#settings, deadline));
      this.#sessions.add(session);
      session.gone.then(() => this.#sessions.delete(session));
      if (signal.aborted) session.close();
      return session;
    };
    return persist(run, this.#settings.connectTimeoutMs, signal, (error) => {
      if (error.type !== "internal") refused = error;
      // Where nobody ever was, nobody is waited for: the address may be wrong.
      return error.retryable && (this.#session ?? refused);
    }).catch((error) => {
      throw refused ?? error;
    });
  }
}

if (Symbol.asyncDispose) RemoteExecutor.prototype[Symbol.asyncDispose] = RemoteExecutor.prototype.close;

// One session of the service: JSON-RPC 2.0 both ways, and the executions that run in it.

import { ExecutorError, refusal } from "./errors.js";
import { Execution } from "./execution.js";
import { linkOf, lost, messageOf } from "./link.js";

const goingAway = 1001;

export class Session {
  #link;
  #settings;
  #lastId = 0;
  #pending = new Map(); // requests by id
  #executions = new Map(); // by their own id
  #kept = new Set(); // what is retained
  #timer;
  #probing = false;
  #end;

  /** Takes nothing new: the service drains it, or another one took its place. */
  retired = false;

  /** Opens a session on channels that open(signal) makes. settings are the checked options of the executor. */
  static async open(open, settings, signal) {
    const session = new Session(linkOf(open, settings.client), settings);
    try {
      session.opened = await session.#link.start(signal);
      return session;
    } catch (error) {
      clearInterval(session.#timer);
      throw error;
    }
  }

  constructor(link, settings) {
    this.#link = link;
    this.#settings = settings;
    this.began = Date.now();
    this.gone = new Promise((resolve) => (this.#end = resolve));
    link.onMessage = (message) => this.#receive(message);
    link.onEnd = (end) => this.#ended(end);
    this.#timer = setInterval(() => this.#keepAlive(), settings.keepAliveMs);
    this.#timer.unref?.();
  }

  get ended() {
    return this.#link.ended;
  }

  /** Runs what execution asks for, and resolves to what read makes of the outcome before the session may close. */
  async execute(execution, read) {
    if (this.#executions.has(execution.id)) throw new ExecutorError("invalid_params", `execution ${execution.id} is running`, { field: "execution" });
    this.#executions.set(execution.id, execution);
    execution.begin();
    try {
      return read(await this.#request(execution.method, execution.params));
    } finally {
      this.#executions.delete(execution.id);
      execution.end();
      this.#closeWhenIdle();
    }
  }

  cancel(execution, reason) {
    this.#notify("cancel", { execution: execution.id, reason });
  }

  /** Notes that something is retained, or is not any more: the session stays for it. */
  keep(retained, kept) {
    if (kept) this.#kept.add(retained);
    else this.#kept.delete(retained);
    this.#closeWhenIdle();
  }

  /** Gives up handles. Where that fails they have gone with the session. */
  release(handles) {
    this.#request("handle.release", { handles }).catch(() => {});
  }

  /** Lets what runs end, and the session then. */
  retire() {
    this.retired = true;
    this.#closeWhenIdle();
  }

  /** Ends the session; what runs is cancelled by the service. */
  close() {
    this.#link.close();
  }

  #closeWhenIdle() {
    if (this.retired && this.#executions.size + this.#kept.size === 0) this.close();
  }

  #request(method, params) {
    if (this.ended) return Promise.reject(lost(1006, ""));
    const id = ++this.#lastId;
    const text = messageOf({ id, method, params });
    if (!this.#fits(text)) return Promise.reject(new ExecutorError("invalid_params", `the request has more than ${this.#settings.maxMessageBytes} bytes`));
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#link.hold(true);
      this.#link.send(text);
    });
  }

  #notify(method, params) {
    this.#link.send(messageOf({ method, params }));
  }

  #fits(text) {
    const most = this.#settings.maxMessageBytes;
    return text.length * 3 <= most || (text.length <= most && new TextEncoder().encode(text).length <= most);
  }

  // The service is probed when it was silent, by a request that changes nothing: every runtime can do that, and none of
  // the web's shows pings.
  #keepAlive() {
    if (this.#link.heard) {
      this.#link.heard = this.#probing = false;
    } else if (this.#probing) {
      this.#probing = false;
      this.#link.abandon("the service is silent");
    } else {
      this.#probing = true;
      this.#request("cancel", { execution: "keep-alive" }).catch(() => {});
    }
  }

  #receive(message) {
    if (typeof message.method === "string") this.#called(message);
    else if ("result" in message || (message.error !== null && typeof message.error === "object")) this.#answered(message);
    else this.#link.fault("the service sent what is no message");
  }

  #answered({ id, result, error }) {
    const waiting = this.#pending.get(id);
    if (waiting === undefined) return; // nobody asked
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#link.hold(false);
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(refusal(error));
  }

  #called({ id, method, params }) {
    const told = Object(params);
    const execution = this.#executions.get(told.execution);
    switch (method) {
      case "tool.call":
      case "fetch":
        if (execution === undefined) return this.#answer(id, { error: { code: -32000, message: "the execution has ended" } });
        return this.#answerLater(id, execution.called(method, told));
      case "tool.cancel":
        return execution?.calledOff(told.call);
      case "execution.log":
        return execution?.logged(told);
      case "execution.state":
        return execution?.stated(told);
      case "session.draining":
        this.#link.draining = true;
        return this.retire();
    }
    if (id !== undefined) this.#answer(id, { error: { code: -32601, message: `this client has no method ${String(method).slice(0, 100)}` } });
  }

  async #answerLater(id, answering) {
    const answer = await answering;
    if (answer !== undefined) this.#answer(id, answer);
  }

  #answer(id, answer) {
    if (id === undefined) return;
    const text = messageOf({ id, ...answer });
    this.#link.send(this.#fits(text) ? text : messageOf({ id, ...Execution.tooLarge }));
  }

  // After the service drained the session, what has no answer was not accepted: it may be sent elsewhere.
  #ended({ code, reason }) {
    clearInterval(this.#timer);
    const error = lost(code, reason, this.#link.draining && code === goingAway);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#end();
  }
}

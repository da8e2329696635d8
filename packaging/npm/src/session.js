// One connection to the service: JSON-RPC 2.0 both ways, and the executions that run over it.

import { ExecutorError, refusal } from "./errors.js";
import { Execution } from "./execution.js";
import { parse } from "./values/json.js";

const protocolVersion = "1";
const noMessage = 1008;

/** Where a channel ended, as the error of everything that was under way. */
const lost = (why) => new ExecutorError("internal", why ? `connection lost: ${why}` : "connection lost");

export class Session {
  #channel;
  #settings;
  #lastId = 0;
  #pending = new Map(); // requests by id
  #executions = new Map(); // by their own id
  #heard = true;
  #timer;
  #end;

  /** draining: the service takes nothing new here. ended: the connection is gone. */
  draining = false;
  ended = false;

  /** Opens a session on a channel that open(signal) makes. settings are the checked options of the executor. */
  static async open(open, settings, signal) {
    const session = new Session(await open(signal), settings);
    const abort = () => session.close();
    signal.addEventListener("abort", abort);
    try {
      session.opened = await session.request("session.open", { client: settings.client });
      if (session.opened?.protocol !== protocolVersion) {
        throw new ExecutorError("unsupported_protocol", `the service speaks version ${session.opened?.protocol} of the protocol, this client version ${protocolVersion}`);
      }
      return session;
    } catch (error) {
      session.close();
      throw error;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  constructor(channel, settings) {
    this.#channel = channel;
    this.#settings = settings;
    this.gone = new Promise((resolve) => (this.#end = resolve));
    channel.onMessage = (text) => this.#receive(text);
    channel.onClose = (code, reason) => this.#closed(code, reason);
    this.#timer = setInterval(() => this.#keepAlive(), settings.keepAliveMs);
    this.#timer.unref?.();
  }

  get busy() {
    return this.#pending.size > 0;
  }

  request(method, params) {
    if (this.ended) return Promise.reject(lost(""));
    const id = ++this.#lastId;
    const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    if (!this.#fits(text)) return Promise.reject(new ExecutorError("invalid_params", `the request has more than ${this.#settings.maxMessageBytes} bytes`));
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      if (this.#pending.size === 1) this.#channel.hold(true);
      this.#channel.send(text);
    });
  }

  notify(method, params) {
    this.#channel.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  /** Runs what execution asks for, and resolves to the outcome as the service sent it. */
  async execute(execution) {
    if (this.#executions.has(execution.id)) throw new ExecutorError("invalid_params", `execution ${execution.id} is running`, { field: "execution" });
    this.#executions.set(execution.id, execution);
    try {
      return await this.request("execute", execution.params);
    } finally {
      this.#executions.delete(execution.id);
      execution.end();
    }
  }

  cancel(execution, reason) {
    if (!this.ended) this.notify("cancel", { execution: execution.id, reason });
  }

  /** Ends the connection; what runs on it is cancelled by the service. */
  close() {
    this.#channel.hold(true); // until the service has closed too
    this.#channel.close(1000, "");
  }

  #fits(text) {
    const most = this.#settings.maxMessageBytes;
    return text.length * 3 <= most || (text.length <= most && new TextEncoder().encode(text).length <= most);
  }

  // The service is probed when it was silent, by a request that changes nothing: every runtime can do that, and none of
  // the web's shows pings.
  #keepAlive() {
    if (this.#heard) {
      this.#heard = false;
      return;
    }
    if (this.probing) {
      this.#channel.close(1001, "the service is silent");
      this.#closed(1006, "the service is silent");
      return;
    }
    this.probing = true;
    this.request("cancel", { execution: "keep-alive" }).catch(() => {});
  }

  #receive(text) {
    this.#heard = true;
    this.probing = false;
    let message;
    try {
      message = parse(text);
    } catch {
      return this.#fault("the service sent what is no JSON");
    }
    if (message === null || typeof message !== "object" || message.jsonrpc !== "2.0") return this.#fault("the service sent what is no message");
    if (typeof message.method === "string") return this.#called(message);
    if ("result" in message || (message.error !== null && typeof message.error === "object")) return this.#answered(message);
    this.#fault("the service sent what is no message");
  }

  #fault(why) {
    this.#channel.close(noMessage, "that was no message of the protocol");
    this.#closed(noMessage, why);
  }

  #answered({ id, result, error }) {
    const waiting = this.#pending.get(id);
    if (waiting === undefined) return; // nobody asked
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#channel.hold(false);
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(refusal(error));
  }

  #called({ id, method, params }) {
    const told = params !== null && typeof params === "object" ? params : {};
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
        this.draining = true;
        return this.#settings.onDraining(this);
    }
    if (id !== undefined) this.#answer(id, { error: { code: -32601, message: `this client has no method ${String(method).slice(0, 100)}` } });
  }

  async #answerLater(id, answering) {
    const answer = await answering;
    if (answer !== undefined) this.#answer(id, answer);
  }

  #answer(id, answer) {
    if (this.ended || id === undefined) return;
    let text = JSON.stringify({ jsonrpc: "2.0", id, ...answer });
    if (!this.#fits(text)) text = JSON.stringify({ jsonrpc: "2.0", id, ...Execution.tooLarge });
    this.#channel.send(text);
  }

  #closed(code, reason) {
    if (this.ended) return;
    this.ended = true;
    clearInterval(this.#timer);
    const why = reason || (code === 1006 ? "" : `close status ${code}`);
    for (const { reject } of this.#pending.values()) reject(lost(why));
    this.#pending.clear();
    this.#end();
  }
}

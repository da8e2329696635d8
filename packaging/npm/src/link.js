// The messages of one session, over as many connections as it takes (docs/decisions/0012 in the repository). Each side counts
// what it sends after session.open and its answer, and keeps it until the other has acknowledged it; on another connection the
// rest is sent again. So each message is delivered once and in order, and what runs on a session does not notice that its
// connection broke.

import { ExecutorError, refusal } from "./errors.js";
import { parse } from "./values/json.js";
import { pause } from "./wait.js";

/** Half of what the service counts on: an acknowledgement after so many messages, or so many characters of them. */
const ackMessages = 32;
const ackLength = 16 << 10;

const protocolVersion = "1";

/** A message of JSON-RPC. */
export const messageOf = (members) => JSON.stringify({ jsonrpc: "2.0", ...members });

const normal = 1000;
const goingAway = 1001;
const badMessage = 1008;

/** Closings after which the service keeps the session: nobody meant its end. */
const unmeant = [goingAway, 1006, 1012];

/** Refusals that no further attempt changes. */
const final = ["session_unknown", "unauthorized", "unsupported_protocol", "invalid_params", "unknown_method"];

export class Link {
  onMessage() {} // of a parsed message
  onEnd() {} // of {code, reason}, once

  /** Something came since this was set to false. */
  heard = true;
  /** The service has said that it drains this session: then status 1001 is its end. */
  draining = false;
  ended = false;

  #open;
  #client;
  #channel;
  #resume; // {token, windowMs}, where the service offers it
  #kept = []; // messages that the service may not have
  #acknowledged = 0; // messages before those
  #received = 0;
  #unsaid = 0; // messages received since the last acknowledgement
  #length = 0; // and the characters of them
  #busy = true;
  #closing = new AbortController();

  /** open(signal) makes channels. */
  constructor(open, client) {
    this.#open = open;
    this.#client = client;
  }

  /** Opens the session, and resolves to what the service told of itself. Rejects where that fails; nothing is left then. */
  start(signal) {
    return this.#connect({ client: this.#client, received: 0 }, signal);
  }

  async #connect(params, signal) {
    const channel = await this.#open(signal);
    return new Promise((resolve, reject) => {
      const settle = (how, value) => {
        signal.removeEventListener("abort", abort);
        how(value);
      };
      const turnAway = (error) => {
        channel.close(normal);
        settle(reject, error);
      };
      const abort = () => turnAway(new ExecutorError("internal", "cannot open a session: it takes too long"));
      signal.addEventListener("abort", abort);
      channel.onClose = (code, reason) => settle(reject, lost(code, reason, code === goingAway));
      channel.onMessage = (text) => {
        try {
          const opened = openedOf(text);
          this.#attach(channel, opened);
          settle(resolve, opened);
        } catch (error) {
          turnAway(error);
        }
      };
      channel.send(messageOf({ id: 0, method: "session.open", params }));
    });
  }

  #attach(channel, { resume, received = 0 }) {
    if (this.ended) throw lost(normal, "");
    if (this.#resume !== undefined) this.#acknowledge(received);
    this.#resume = resume;
    this.#channel = channel;
    this.heard = true;
    channel.onMessage = (text) => this.#take(text);
    channel.onClose = (code, reason) => this.#broken(code, reason);
    channel.hold(this.#busy);
    for (const text of this.#kept) channel.send(text);
  }

  send(text) {
    if (this.ended) return;
    if (this.#resume !== undefined) this.#kept.push(text);
    this.#channel?.send(text);
  }

  /** Whether the session keeps the process alive. */
  hold(busy) {
    this.#busy = busy;
    this.#channel?.hold(busy);
  }

  /** Ends the session; the service cancels what runs. */
  close() {
    if (this.ended) return;
    this.hold(true); // until the service has closed too
    this.#closing.abort(new Error("the session was closed"));
    if (this.#channel === undefined) this.#end(normal, "");
    else this.#channel.close(normal);
  }

  /** Ends the session because of a fault of the service. */
  fault(reason) {
    const channel = this.#leave();
    channel?.close(badMessage, "that was no message of the protocol");
    this.#end(badMessage, reason);
  }

  /** Gives up the connection, and makes another. */
  abandon(reason) {
    const channel = this.#leave();
    channel?.close(goingAway, reason);
    if (channel !== undefined) this.#broken(1006, reason);
  }

  // Nothing more is heard of the channel that is left.
  #leave() {
    const channel = this.#channel;
    this.#channel = undefined;
    if (channel !== undefined) Object.assign(channel, { onMessage() {}, onClose() {} });
    return channel;
  }

  #take(text) {
    this.heard = true;
    let message;
    try {
      message = parse(text);
      if (message === null || typeof message !== "object" || message.jsonrpc !== "2.0") throw new TypeError("that is no message");
      if (message.method === "session.ack") return this.#acknowledge(message.params.received);
    } catch (error) {
      return this.fault(`the service sent what is no ${error instanceof SyntaxError ? "JSON" : "message"}`);
    }
    this.#count(text);
    this.onMessage(message);
  }

  #count(text) {
    if (this.#resume === undefined) return;
    this.#received++;
    this.#length += text.length;
    if (++this.#unsaid < ackMessages && this.#length < ackLength) return;
    this.#unsaid = this.#length = 0;
    this.#channel?.send(messageOf({ method: "session.ack", params: { received: this.#received } }));
  }

  #acknowledge(received) {
    const more = received - this.#acknowledged;
    if (!Number.isSafeInteger(received) || more > this.#kept.length) throw new TypeError("that many were not sent");
    if (more <= 0) return;
    this.#kept.splice(0, more);
    this.#acknowledged = received;
  }

  #broken(code, reason) {
    this.#channel = undefined;
    const over = this.#closing.signal.aborted || (this.draining && code === goingAway);
    if (this.#resume === undefined || over || !unmeant.includes(code)) this.#end(code, reason);
    else this.#again(code, reason);
  }

  async #again(code, reason) {
    const until = Date.now() + this.#resume.windowMs;
    for (let attempt = 0; !this.ended; attempt++) {
      const signal = AbortSignal.any([AbortSignal.timeout(Math.max(1, until - Date.now())), this.#closing.signal]);
      try {
        await this.#connect({ client: this.#client, resume: this.#resume.token, received: this.#received }, signal);
        return;
      } catch (error) {
        if (final.includes(error.type) || signal.aborted) return this.#end(code, reason);
      }
      await pause(attempt, this.#closing.signal);
    }
  }

  #end(code, reason) {
    if (this.ended) return;
    this.ended = true;
    this.#kept = [];
    this.onEnd({ code, reason });
  }
}

/** Where a connection ended, as the error of everything that was under way. */
export function lost(code, reason, stopping = false) {
  if (stopping) return new ExecutorError("draining", "the service is stopping");
  const why = reason || (code === 1006 ? "" : `close status ${code}`);
  return new ExecutorError("internal", why ? `connection lost: ${why}` : "connection lost");
}

// openedOf reads the answer to session.open.
function openedOf(text) {
  const { error, result } = parse(text);
  if (error !== undefined) throw refusal(error);
  if (result?.protocol === protocolVersion) return result;
  throw new ExecutorError("unsupported_protocol", `the service speaks version ${result?.protocol} of the protocol, this client version ${protocolVersion}`);
}

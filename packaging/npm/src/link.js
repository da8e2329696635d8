// The messages of one session, over as many connections as it takes (docs/decisions/0012 in the repository). Each side counts
// what it sends after session.open and its answer, and keeps it until the other has acknowledged it; on another connection the
// rest is sent again. So each message is delivered once and in order, and what runs on a session does not notice that its
// connection broke.

import { ExecutorError, refusal } from "./errors.js";
import { parse } from "./values/json.js";
import { onAbort, persist } from "./wait.js";

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

/**
 * One session on channels that open(signal) makes; client is what it tells of itself. Its owner sets onMessage(message), of a
 * parsed message, and onEnd({code, reason}), which comes once.
 */
export function linkOf(open, client) {
  let channel;
  let resume; // {token, windowMs}, where the service offers it
  let kept = []; // messages that the service may not have
  let acknowledged = 0; // messages before those
  let received = 0;
  let unsaid = 0; // messages received since the last acknowledgement
  let length = 0; // and the characters of them
  let busy = true;
  const closing = new AbortController();

  const link = {
    onMessage() {},
    onEnd() {},

    /** Something came since this was set to false. */
    heard: true,
    /** The service has said that it drains this session: then status 1001 is its end. */
    draining: false,
    ended: false,

    /** Opens the session, and resolves to what the service told of itself. Rejects where that fails; nothing is left then. */
    start: (signal) => connect({ client, received: 0 }, signal),

    send(text) {
      if (link.ended) return;
      if (resume !== undefined) kept.push(text);
      channel?.send(text);
    },

    /** Whether the session keeps the process alive. */
    hold(value) {
      busy = value || closing.signal.aborted;
      channel?.hold(busy);
    },

    /** Ends the session; the service cancels what runs. */
    close() {
      if (link.ended) return;
      closing.abort(new Error("the session was closed"));
      link.hold(true); // until the service has closed too
      if (channel === undefined) end(normal, "");
      else channel.close(normal);
    },

    /** Ends the session because of a fault of the service. */
    fault(reason) {
      leave(badMessage, "that was no message of the protocol");
      end(badMessage, reason);
    },

    /** Gives up the connection, and makes another. */
    abandon(reason) {
      if (leave(goingAway, reason)) broken(1006, reason);
    },
  };

  async function connect(params, signal) {
    const late = new ExecutorError("internal", "cannot open a session: it takes too long");
    if (signal.aborted) throw late;
    const made = await open(signal);
    return new Promise((resolve, reject) => {
      let off;
      const settle = (how, value) => {
        off?.();
        how(value);
      };
      const turnAway = (error) => {
        silence(made).close(normal);
        settle(reject, error);
      };
      made.onClose = (code, reason) => settle(reject, lost(code, reason, code === goingAway));
      made.onMessage = (text) => {
        try {
          const opened = openedOf(text);
          attach(made, opened);
          settle(resolve, opened);
        } catch (error) {
          turnAway(error);
        }
      };
      off = onAbort(signal, () => turnAway(late));
      if (!signal.aborted) made.send(messageOf({ id: 0, method: "session.open", params }));
    });
  }

  function attach(made, opened) {
    if (link.ended) throw lost(normal, "");
    if (resume !== undefined) acknowledge(opened.received ?? 0);
    resume = opened.resume;
    channel = made;
    link.heard = true;
    channel.onMessage = take;
    channel.onClose = broken;
    channel.hold(busy);
    for (const text of kept) channel.send(text);
  }

  // leave closes the channel, if there is one, and hears nothing more of it.
  function leave(code, reason) {
    const left = channel;
    channel = undefined;
    if (left === undefined) return false;
    silence(left).close(code, reason);
    return true;
  }

  function take(text) {
    link.heard = true;
    let message;
    try {
      message = parse(text);
      if (message?.jsonrpc !== "2.0") throw new TypeError("that is no message");
      if (message.method === "session.ack") return acknowledge(message.params.received);
    } catch (error) {
      return link.fault(`the service sent what is no ${error instanceof SyntaxError ? "JSON" : "message"}`);
    }
    count(text);
    link.onMessage(message);
  }

  function count(text) {
    if (resume === undefined) return;
    received++;
    length += text.length;
    if (++unsaid < ackMessages && length < ackLength) return;
    unsaid = length = 0;
    channel?.send(messageOf({ method: "session.ack", params: { received } }));
  }

  function acknowledge(all) {
    const more = all - acknowledged;
    if (!Number.isSafeInteger(all) || more > kept.length) throw new TypeError("that many were not sent");
    if (more <= 0) return;
    kept.splice(0, more);
    acknowledged = all;
  }

  function broken(code, reason) {
    channel = undefined;
    const over = closing.signal.aborted || (link.draining && code === goingAway);
    if (resume === undefined || over || !unmeant.includes(code)) end(code, reason);
    else again(code, reason);
  }

  function again(code, reason) {
    const resuming = (signal) => connect({ client, resume: resume.token, received }, signal);
    persist(resuming, resume.windowMs, closing.signal, ({ retryable }) => retryable !== false && !link.ended).catch(() => end(code, reason));
  }

  function end(code, reason) {
    if (link.ended) return;
    link.ended = true;
    kept = [];
    link.onEnd({ code, reason });
  }

  return link;
}

// silence has nothing more heard of a channel.
const silence = (channel) => Object.assign(channel, { onMessage() {}, onClose() {} });

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

// The messages of one session, over as many connections as it takes (docs/decisions/0012 in the repository). Each side counts
// what it sends after session.open and its answer, and keeps it until the other has acknowledged it; on another connection the
// rest is sent again. So each message is delivered once and in order, and what runs on a session does not notice that its
// connection broke.

import { ExecutorError, refusal, refuse } from "./errors.js";
import { parse, stringify } from "./values/json.js";
import { late, onAbort, persist } from "./wait.js";

/** Half of what the service counts on: an acknowledgement after so many messages, or so many characters of them. */
const ackMessages = 32;
const ackLength = 16 << 10;

const protocolVersion = "1";

/** A message of JSON-RPC. */
export const messageOf = (members) => stringify({ jsonrpc: "2.0", ...members });

const noMessage = "the service sent what is no message";

const normal = 1000;
const goingAway = 1001;
const broke = 1006;
const badMessage = 1008;

/** Closings after which the service keeps the session: nobody meant its end. */
const unmeant = [goingAway, broke, 1012];

/**
 * One session on channels that open(signal) makes, as settings say: name is what it tells of itself. Its owner hears of each
 * message, parsed, by onMessage, and once, by onEnd, of the error that everything under way ends in. Where isWanted() tells that
 * nothing is, nor anything retained, one attempt to resume the session is enough: they keep the process alive.
 */
export function linkOf(open, { name = "executord-js", keepAliveMs }, onMessage, onEnd, isWanted) {
  let channel;
  let resume; // {token, windowMs}, where the service offers it
  let kept = []; // messages that the service may not have
  let acknowledged = 0; // messages before those
  let received = 0;
  let unsaid = 0; // messages received since the last acknowledgement
  let length = 0; // and the characters of them
  let silence = 0; // ticks of timer since something came
  let fruitless = 0; // connections that broke since a message came, or arrived there
  let silent; // a channel that was given up
  let timer;
  let busy = true;
  let draining = false; // the service has said so: then status 1001 is the end
  let ended = false;
  const closing = new AbortController();

  function send(text) {
    if (ended) return;
    if (resume) kept.push(text);
    channel?.send(text);
  }

  /** Whether the session keeps the process alive. */
  function hold(value) {
    busy = value || closing.signal.aborted;
    channel?.hold(busy);
  }

  /** Ends the session; the service cancels what runs. */
  function close() {
    if (ended) return;
    closing.abort();
    hold(true); // until the service has closed too
    if (channel) channel.close(normal);
    else end(normal);
  }

  /** Opens the session, or resumes it, and resolves to what the service told. Rejects where that fails; nothing is left then. */
  async function connect(signal) {
    const params = { client: { name, version: "1" }, resume: resume?.token, received };
    const tooLate = new ExecutorError("internal", `cannot open a session: ${late}`);
    if (signal.aborted) throw tooLate;
    const made = await open(signal);
    let off;
    try {
      return await new Promise((resolve, reject) => {
        made.gone = (code, reason) => reject(lost(code, reason, code === goingAway));
        const opened = async (text) => attach(made, openedOf(text)); // at once: more may come with it
        made.take = (text) => {
          made.take = undefined; // there is one answer
          resolve(opened(text));
        };
        off = onAbort(signal, () => reject(tooLate));
        if (!signal.aborted) made.send(messageOf({ id: 0, method: "session.open", params }));
      });
    } catch (error) {
      deafen(made).close(normal);
      throw error;
    } finally {
      off();
    }
  }

  function attach(made, opened) {
    if (ended) throw lost();
    if (resume) acknowledge(opened.received ?? 0);
    resume = opened.resume;
    channel = made;
    leaveSilent();
    silence = 0;
    timer ??= setInterval(watch, keepAliveMs);
    timer.unref?.();
    channel.take = take;
    channel.gone = broken;
    channel.hold(busy);
    for (const text of kept) channel.send(text);
    return opened;
  }

  // The service is probed when it was silent, by a request that changes nothing: every runtime can do that, and none of
  // the web's shows pings. Its answer is to nobody.
  function watch() {
    silence++;
    if (silence === 2) send(messageOf({ id: 0, method: "cancel", params: { execution: "keep-alive" } }));
    if (silence <= 2 || !channel) return;
    silent = deafen(channel);
    broken(broke, "the service is silent");
  }

  // A page closes a connection in no way that keeps its session, so one that was silent is left when that is elsewhere, or over.
  function leaveSilent() {
    silent?.close(goingAway);
    silent = undefined;
  }

  function take(text) {
    silence = 0;
    let message;
    try {
      message = parse(text);
      const { jsonrpc, method, params, error } = message;
      if (jsonrpc !== "2.0" || !(typeof method === "string" || "result" in message || error instanceof Object)) refuse(noMessage);
      if (method === "session.ack") return acknowledge(params.received);
      if (method === "session.draining") draining = true;
    } catch {
      deafen(channel).close(badMessage, noMessage);
      return broken(badMessage, noMessage);
    }
    fruitless = 0;
    count(text);
    onMessage(message);
  }

  function count(text) {
    if (!resume) return;
    received++;
    length += text.length;
    if (++unsaid < ackMessages && length < ackLength) return;
    unsaid = length = 0;
    channel?.send(messageOf({ method: "session.ack", params: { received } }));
  }

  function acknowledge(all) {
    const more = all - acknowledged;
    if (!Number.isSafeInteger(all) || more > kept.length) refuse(noMessage); // that many were not sent
    if (more <= 0) return;
    kept.splice(0, more);
    acknowledged = all;
    fruitless = 0;
  }

  function broken(code, reason) {
    channel = undefined;
    const over = closing.signal.aborted || (draining && code === goingAway);
    if (!resume || over || !unmeant.includes(code)) return end(code, reason);
    const again = () => persist(connect, resume.windowMs, closing.signal, ({ retryable }) => retryable !== false && isWanted()).catch(() => end(code, reason));
    // What breaks each connection, as a message that is too large for a proxy, is met ever less often.
    setTimeout(again, Math.min(2 * fruitless++, 1000));
  }

  function end(code, reason) {
    if (ended) return;
    ended = true;
    channel = undefined;
    kept = [];
    leaveSilent();
    clearInterval(timer);
    onEnd(lost(code, reason, draining && code === goingAway));
  }

  return { connect, send, hold, close };
}

// deafen has nothing more heard of a channel.
function deafen(channel) {
  channel.take = channel.gone = undefined;
  return channel;
}

/** Where a connection ended, as the error of everything that was under way. */
export function lost(code = broke, reason, stopping) {
  if (stopping) return new ExecutorError("draining", "the service is stopping");
  const why = reason || (code !== broke && `close status ${code}`);
  return new ExecutorError("internal", `connection lost${why ? `: ${why}` : ""}`);
}

// openedOf reads the answer to session.open.
function openedOf(text) {
  const { error, result } = parse(text);
  if (error) throw refusal(error);
  if (result?.protocol === protocolVersion) return result;
  throw new ExecutorError("unsupported_protocol", `the service speaks protocol ${result?.protocol}, and this client ${protocolVersion}`);
}

// A WebSocket (RFC 6455) over a socket of Node's, which Deno and Bun have too: it reaches unix sockets, sends a token, and
// shows why a handshake was refused, none of which the WebSocket of those runtimes does. It offers no extension.

import { entriesOf } from "../values/walk.js";
import { late, onAbort } from "../wait.js";
import { fault, frame, frameReader, maxControlBytes } from "./frames.js";
import { foreign, refusalOf, subprotocol, unreachable, upgrading } from "./handshake.js";

const accepted = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, section 1.3
const maxAnswer = 16 << 10; // bytes of one to the handshake
const closeGraceMs = 2000;

/** The version of Node whose sockets this runtime has, if any. */
export const streams = globalThis.process?.versions?.node;

// Node before 20.16 has import only. The name is an argument so that bundlers for browsers leave it alone.
const load = async (name) => process.getBuiltinModule?.(name) ?? import(name);

/**
 * Connects and makes the handshake. Rejects with the service's own error when it refuses. That is done by hand: http.request of
 * Bun opens no WebSocket before 1.4 (2026-11).
 */
export async function openStream(address, secret, tls, maxMessageBytes, signal) {
  const { url, path } = address;
  const secure = url.protocol === "wss:";
  const [{ connect }, crypto, buffers] = await Promise.all([secure ? "node:tls" : "node:net", "node:crypto", "node:buffer"].map(load));
  const host = url.hostname.replace(/[[\]]/g, "");
  const socket = connect({
    ...(path ? { path } : { host, port: Number(url.port || (secure ? 443 : 80)) }),
    ...(secure && { servername: /:|^[\d.]+$/.test(host) ? "" : host, ALPNProtocols: ["http/1.1"], ...tls }),
  });
  socket.setNoDelay?.(true);
  const off = onAbort(signal, () => socket.destroy(new Error(late)));
  try {
    const key = crypto.randomBytes(16).toString("base64");
    const fields = { Host: url.host, ...upgrading, Connection: "Upgrade", "Sec-WebSocket-Key": key, "Sec-WebSocket-Version": 13, ...secret };
    socket.write([`GET ${url.pathname} HTTP/1.1`, ...entriesOf(fields).map((field) => field.join(": ")), "", ""].join("\r\n"));
    await answered(socket, crypto.createHash("sha1").update(key + accepted).digest("base64"));
    return channelOver(socket, crypto, buffers, maxMessageBytes);
  } catch (error) {
    socket.destroy();
    throw error.name === "ExecutorError" ? error : unreachable(address, error.message || error.code);
  } finally {
    off();
  }
}

/**
 * Reads the answer to the handshake, and leaves the socket paused before what comes after it. Of a refusal it reads the JSON,
 * however its length is told: it ends where the braces do, or with the connection, or at a bound.
 */
function answered(socket, expected) {
  return new Promise((resolve, reject) => {
    let text = ""; // as latin1
    let cause = new Error("the connection ended");
    const read = (bytes) => {
      if (bytes) text += bytes.toString("latin1");
      const over = !bytes || text.length > maxAnswer;
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return over && reject(bytes ? new Error("its answer has no end") : cause);
      const body = text.slice(end + 4);
      const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1];
      if (status !== "101") {
        const told = objectIn(body);
        return (over || told) && reject(refusalOf(status, told));
      }
      const field = (name) => new RegExp(`^sec-websocket-${name}:(.*)`, "im").exec(text)?.[1].trim();
      if (field("accept") !== expected || field("protocol") !== subprotocol) return reject(new Error(foreign));
      socket.off("data", read).off("close", ended).pause();
      if (body) socket.unshift(bytes.subarray(-body.length));
      resolve();
    };
    const ended = () => read();
    socket.on("data", read);
    socket.on("error", (error) => (cause = error)); // "close" follows
    socket.on("close", ended);
  });
}

function objectIn(body) {
  try {
    return JSON.parse(body.slice(body.indexOf("{"), body.lastIndexOf("}") + 1));
  } catch {
    return undefined;
  }
}

function channelOver(socket, { randomBytes }, buffers, maxMessageBytes) {
  const { Buffer, isAscii, isUtf8 } = buffers;
  let closing = false;
  let told; // why it ended: what was said first
  const write = (opcode, bytes) => socket.writable && socket.write(frame(opcode, bytes, randomBytes(4)));
  const channel = {
    send: (text) => write(1, Buffer.from(text)),
    close(code = 1000, reason = "") {
      if (closing) return;
      closing = true;
      const body = Buffer.from(`  ${reason}`).subarray(0, maxControlBytes);
      body.writeUInt16BE(code);
      write(8, body);
      const timer = setTimeout(() => socket.destroy(), closeGraceMs);
      timer.unref?.();
      socket.on("close", () => clearTimeout(timer));
    },
    hold: (busy) => (busy ? socket.ref() : socket.unref()),
  };
  const read = frameReader(buffers, maxMessageBytes, (opcode, body) => {
    if (told) return;
    if (opcode === 1) channel.take?.(textIn(body));
    else if (opcode === 9) write(10, body);
    else if (opcode === 8) {
      told ??= body.length < 2 ? [1005, ""] : [body.readUInt16BE(), body.utf8Slice(2)];
      channel.close();
      socket.end();
    }
  });
  // TextDecoder by the ways of Node, which are faster, most of all for what is ASCII, as bytes in base64 are.
  const textIn = (bytes) => {
    if (isAscii(bytes)) return bytes.latin1Slice();
    if (isUtf8(bytes)) return bytes.utf8Slice();
    return fault(1007, "a text message is not UTF-8");
  };
  socket.on("data", (bytes) => {
    try {
      told ?? read(bytes); // what comes after the end is neither kept nor heard
    } catch (error) {
      told ??= [error.code ?? 1002, error.message];
      channel.close(...told);
      socket.end();
    }
  });
  socket.on("close", () => channel.gone?.(...(told ?? [1006, ""])));
  socket.resume(); // in a turn of its own: the owner sets its callbacks first
  return channel;
}

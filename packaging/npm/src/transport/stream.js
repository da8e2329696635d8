// A WebSocket (RFC 6455) over a socket of Node's, which Deno and Bun have too: it reaches unix sockets, sends a token, and
// shows why a handshake was refused, none of which the WebSocket of those runtimes does. It offers no extension.

import { onAbort } from "../wait.js";
import { refusalOf } from "./handshake.js";
import { frame, frameReader, maxControlBytes } from "./frames.js";
import { subprotocol, unreachable } from "./index.js";

const accepted = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, section 1.3
const maxHeadBytes = 16 << 10;
const maxRefusalBytes = 64 << 10;
const closeGraceMs = 2000;

/** Tells whether this runtime has Node's sockets. */
export const streams = () => typeof globalThis.process?.versions?.node === "string";

// Node before 20.16 has import only. The name is an argument so that bundlers for browsers leave it alone.
const load = async (name) => process.getBuiltinModule?.(name) ?? import(name);

/** Connects and makes the handshake. Rejects with the service's own error when it refuses. */
export async function openStream(address, { token, tls, maxMessageBytes }, signal) {
  const [net, secure, crypto, buffers] = await Promise.all(["node:net", "node:tls", "node:crypto", "node:buffer"].map(load));
  const socket = dial(address, net, secure, tls);
  const off = onAbort(signal, () => socket.destroy(new Error("it takes too long")));
  try {
    const key = crypto.randomBytes(16).toString("base64");
    socket.write(requestText(address, key, token));
    const { status, headers, body } = await answerOf(socket);
    if (status !== 101) throw refusalOf(status, body);
    const expected = crypto.createHash("sha1").update(key + accepted).digest("base64");
    if (headers["sec-websocket-accept"] !== expected || headers["sec-websocket-protocol"] !== subprotocol) {
      throw new Error(`it does not speak ${subprotocol}`);
    }
    return channelOver(socket, Uint8Array.from(body, (unit) => unit.charCodeAt(0)), frameReader(maxMessageBytes, decoderOf(buffers)), () => crypto.randomBytes(4));
  } catch (error) {
    socket.destroy();
    throw error.name === "ExecutorError" ? error : unreachable(address, error.message || error.code);
  } finally {
    off();
  }
}

function dial({ path, url }, net, secure, tls) {
  const host = url?.hostname.replace(/^\[|\]$/g, "");
  const to = (port, more) => ({ host, port: Number(url.port || port), ...more });
  const socket = path !== undefined ? net.connect({ path })
    : url.protocol === "ws:" ? net.connect(to(80))
    : secure.connect(to(443, { servername: net.isIP(host) ? undefined : host, ALPNProtocols: ["http/1.1"], ...tls }));
  socket.on("error", () => {}); // answerOf and the channel hear of it by "close"
  socket.setNoDelay?.(true);
  return socket;
}

function requestText({ url }, key, token) {
  const head = [
    `GET ${url?.pathname ?? "/v1/session"} HTTP/1.1`,
    `Host: ${url?.host ?? "localhost"}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Key: ${key}`,
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Protocol: ${subprotocol}`,
  ];
  if (token !== undefined) head.push(`Authorization: Bearer ${token}`);
  return head.join("\r\n") + "\r\n\r\n";
}

/**
 * Reads the answer to the handshake as latin1. The body is what came after the head; of a refusal it is its JSON, however its
 * length is told: it ends where the braces do, or with the connection, or at a bound.
 */
function answerOf(socket) {
  return new Promise((resolve, reject) => {
    let text = "";
    let cause = new Error("the connection ended");
    const settle = (done, value) => {
      socket.pause();
      for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener);
      done(value);
    };
    const read = (ended) => {
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return ended ? settle(reject, cause) : text.length > maxHeadBytes && settle(reject, new Error("its answer has no end"));
      const head = headOf(text.slice(0, end));
      const body = text.slice(end + 4);
      if (head.status === 101) return settle(resolve, { ...head, body });
      const json = body.slice(body.indexOf("{"), body.lastIndexOf("}") + 1);
      if (ended || body.length > maxRefusalBytes || isJson(json)) settle(resolve, { ...head, body: json });
    };
    const listeners = {
      data: (bytes) => {
        text += bytes.toString("latin1");
        read(false);
      },
      error: (error) => (cause = error),
      close: () => read(true),
    };
    for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener);
  });
}

function isJson(text) {
  try {
    return text !== "" && JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

function headOf(text) {
  const [first, ...fields] = text.split("\r\n");
  const pairs = fields.map((field) => [field.slice(0, field.indexOf(":")).toLowerCase(), field.slice(field.indexOf(":") + 1).trim()]);
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]), headers: Object.fromEntries(pairs) };
}

// decoderOf is TextDecoder by the ways of Node, which are faster, most of all for what is ASCII, as bytes in base64 are.
const decoderOf = ({ Buffer, isAscii, isUtf8 }) => (bytes) => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (isAscii(buffer)) return buffer.latin1Slice();
  return isUtf8(buffer) ? buffer.utf8Slice() : undefined;
};

function channelOver(socket, rest, read, makeMask) {
  let open = true;
  let closing = false;
  let told; // why it ended: what was said first
  const write = (opcode, bytes) => socket.writable && socket.write(frame(opcode, bytes, makeMask()));
  const channel = {
    onMessage() {},
    onClose() {},
    send: (text) => write(1, encoder.encode(text)),
    close(code = 1000, reason = "") {
      if (closing) return;
      closing = true;
      write(8, closeBody(code, reason));
      const timer = setTimeout(() => socket.destroy(), closeGraceMs);
      timer.unref?.();
      socket.on("close", () => clearTimeout(timer));
    },
    hold: (busy) => (busy ? socket.ref() : socket.unref()),
  };
  const take = (bytes) => {
    try {
      for (const { opcode, body } of read(bytes)) handle(opcode, body);
    } catch (fault) {
      told ??= [fault.code ?? 1002, fault.message];
      channel.close(...told);
      socket.end();
    }
  };
  const handle = (opcode, body) => {
    if (opcode === 1) {
      if (open) channel.onMessage(body);
    } else if (opcode === 9) write(10, body);
    else if (opcode === 8) {
      told ??= readClose(body);
      channel.close();
      socket.end();
    }
  };
  socket.on("data", take);
  socket.on("close", () => {
    open = false;
    channel.onClose(...(told ?? [1006, ""]));
  });
  // The owner sets its callbacks first.
  queueMicrotask(() => {
    if (rest.length > 0) take(rest);
    socket.resume();
  });
  return channel;
}

const encoder = new TextEncoder();

function closeBody(code, reason) {
  const text = encoder.encode(reason).subarray(0, maxControlBytes - 2);
  const body = new Uint8Array(2 + text.length);
  body.set([code >> 8, code & 0xff]);
  body.set(text, 2);
  return body;
}

function readClose(body) {
  if (body.length < 2) return [1005, ""];
  return [(body[0] << 8) | body[1], new TextDecoder().decode(body.subarray(2))];
}

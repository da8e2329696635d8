// A WebSocket (RFC 6455) over a socket of Node's, which Deno and Bun have too: it reaches unix sockets, sends a token, and
// shows why a handshake was refused, none of which the WebSocket of those runtimes does. It offers no extension.

import { refusalOf } from "./handshake.js";
import { frame, FrameReader, maxControlBytes } from "./frames.js";
import { subprotocol, unreachable } from "./index.js";

const accepted = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, section 1.3
const maxHeadBytes = 16 << 10;
const maxRefusalBytes = 64 << 10;
const closeGraceMs = 2000;

const builtin = (name) => globalThis.process?.getBuiltinModule?.(name);

/** Tells whether this runtime has Node's sockets. */
export const streams = () => typeof globalThis.process?.versions?.node === "string";

// Node before 20.16 has import only. The name is an argument so that bundlers for browsers leave it alone.
const load = async (name) => builtin(name) ?? import(name);

/** Connects and makes the handshake. Rejects with the service's own error when it refuses. */
export async function openStream(address, { token, tls, maxMessageBytes }, signal) {
  const [net, secure, crypto, buffers] = await Promise.all(["node:net", "node:tls", "node:crypto", "node:buffer"].map(load));
  const socket = dial(address, net, secure, tls);
  const abort = () => socket.destroy(new Error("it takes too long"));
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  try {
    const key = crypto.randomBytes(16).toString("base64");
    socket.write(requestText(address, key, token));
    const { status, headers, rest, body } = await readHead(socket);
    if (status !== 101) throw refusalOf(status, await body());
    const expected = crypto.createHash("sha1").update(key + accepted).digest("base64");
    if (headers["sec-websocket-accept"] !== expected || headers["sec-websocket-protocol"] !== subprotocol) {
      throw new Error(`it does not speak ${subprotocol}`);
    }
    return channelOver(socket, rest, new FrameReader(maxMessageBytes, decoderOf(buffers)), () => crypto.randomBytes(4));
  } catch (error) {
    socket.destroy();
    throw error.name === "ExecutorError" ? error : unreachable(address, error.message || error.code);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function dial({ path, url }, net, secure, tls) {
  const socket = connect(path, url, net, secure, tls);
  socket.on("error", () => {}); // readHead and the channel hear of it by "close"
  socket.setNoDelay?.(true);
  return socket;
}

function connect(path, url, net, secure, tls) {
  if (path !== undefined) return net.connect({ path });
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol === "ws:") return net.connect({ host, port: Number(url.port || 80) });
  const servername = net.isIP(host) ? undefined : host;
  return secure.connect({ host, port: Number(url.port || 443), servername, ALPNProtocols: ["http/1.1"], ...tls });
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

/** Reads the answer up to its body. rest is what came after it; body() reads on to the end, within a bound. */
function readHead(socket) {
  return new Promise((resolve, reject) => {
    let text = "";
    let cause;
    const onError = (error) => (cause = error);
    const onClose = () => reject(cause ?? new Error("the connection ended"));
    const onData = (bytes) => {
      text += bytes.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return text.length > maxHeadBytes ? reject(new Error("its answer has no end")) : undefined;
      socket.pause();
      for (const [event, listener] of listeners) socket.off(event, listener);
      const rest = Uint8Array.from(text.slice(end + 4), (unit) => unit.charCodeAt(0));
      resolve({ ...headOf(text.slice(0, end)), rest, body: () => readBody(socket, text.slice(end + 4)) });
    };
    const listeners = [["data", onData], ["error", onError], ["close", onClose]];
    for (const [event, listener] of listeners) socket.on(event, listener);
  });
}

function headOf(text) {
  const [first, ...fields] = text.split("\r\n");
  const headers = { __proto__: null };
  for (const field of fields) headers[field.slice(0, field.indexOf(":")).toLowerCase()] = field.slice(field.indexOf(":") + 1).trim();
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]), headers };
}

// readBody takes the JSON of a refusal, however its length is told: it ends where the braces do, or with the connection.
function readBody(socket, begun) {
  return new Promise((resolve) => {
    let text = begun;
    const json = () => text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1);
    const whole = () => {
      try {
        return JSON.parse(json()) !== undefined;
      } catch {
        return text.length > maxRefusalBytes;
      }
    };
    if (whole()) return resolve(json());
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      if (whole()) resolve(json());
    });
    socket.on("close", () => resolve(json()));
    socket.resume();
  });
}

// decoderOf is TextDecoder by the ways of Node, which are faster, most of all for what is ASCII, as bytes in base64 are.
const decoderOf = ({ Buffer, isAscii, isUtf8 }) => (bytes) => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (isAscii(buffer)) return buffer.latin1Slice();
  return isUtf8(buffer) ? buffer.utf8Slice() : undefined;
};

function channelOver(socket, rest, reader, makeMask) {
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
      for (const { opcode, body } of reader.read(bytes)) handle(opcode, body);
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

// A service that is a script: it misbehaves as no real one does. It speaks RFC 6455 by its own few lines.
import { createHash } from "node:crypto";
import { createServer } from "node:http";

/**
 * Runs script(peer) for each session, after answering session.open. head stands in place of the answer to the handshake, and
 * early, bytes as latin1, is sent with that in one piece. opened is that answer's result, or makes it. Resolves to {url, close}.
 */
export async function serveScript(script, { open = true, opened = { session: "s", protocol: "1", server: { name: "script" } }, head = "", early = "" } = {}) {
  const server = createServer((request, response) => response.writeHead(404).end("nothing"));
  const sockets = new Set();
  const failures = [];
  server.on("upgrade", (request, socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
    socket.write(head || `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: executor.v1\r\n\r\n${early}`, "latin1");
    const peer = new Peer(socket, request);
    const run = async () => {
      if (open) {
        const { id } = await peer.receive();
        peer.send({ id, result: typeof opened === "function" ? opened() : opened });
      }
      await script(peer);
    };
    run().catch((error) => failures.push(error));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `ws://127.0.0.1:${server.address().port}`,
    failures,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

class Peer {
  #closed = false;
  #have = Buffer.alloc(0);
  #messages = [];
  #waiting = [];

  constructor(socket, request) {
    this.socket = socket;
    this.request = request;
    socket.on("data", (bytes) => this.#read(bytes));
    socket.on("close", () => this.#give(undefined));
  }

  /** The next message; undefined at the end. A pong is {opcode, body}; a close is answered. */
  receive() {
    if (this.#messages.length > 0) return Promise.resolve(this.#messages.shift());
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  send(message) { this.sendText(JSON.stringify({ jsonrpc: "2.0", ...message })); }
  sendText(text) { this.frame(0x81, Buffer.from(text)); }

  /** A frame by its first byte. */
  frame(first, body) {
    const head = body.length < 126 ? Buffer.from([first, body.length]) : Buffer.alloc(10);
    if (body.length >= 126) {
      head[0] = first;
      head[1] = 127;
      head.writeBigUInt64BE(BigInt(body.length), 2);
    }
    this.socket.write(Buffer.concat([head, body]));
  }

  close(code, reason = "") {
    this.#closed = true;
    const body = Buffer.alloc(2);
    body.writeUInt16BE(code);
    this.frame(0x88, Buffer.concat([body, Buffer.from(reason)]));
  }

  #give(message) {
    const waiting = this.#waiting.shift();
    if (waiting) waiting(message);
    else this.#messages.push(message);
  }

  #read(bytes) {
    this.#have = Buffer.concat([this.#have, bytes]);
    for (;;) {
      const b = this.#have;
      if (b.length < 2) return;
      const short = b[1] & 0x7f;
      const head = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (b.length < head) return;
      const length = short < 126 ? short : short === 126 ? b.readUInt16BE(2) : Number(b.readBigUInt64BE(2));
      if (b.length < head + 4 + length) return;
      if (!(b[1] & 0x80)) throw new Error("a client masks");
      const body = Buffer.from(b.subarray(head + 4, head + 4 + length).map((byte, i) => byte ^ b[head + (i & 3)]));
      this.#have = b.subarray(head + 4 + length);
      if ((b[0] & 0x0f) === 8) {
        if (!this.#closed) this.close(1000);
        this.socket.end();
        continue;
      }
      this.#give((b[0] & 0x0f) === 1 ? JSON.parse(body.toString()) : { opcode: b[0] & 0x0f, body });
    }
  }
}

export const outcome = (value) => ({ status: "ok", value, logs: [], stats: {} });

// The transcripts of ipc/protocol/conformance, played to the service over the client's own WebSocket.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import test, { after, before } from "node:test";
import { transportOf } from "../src/transport/index.js";
import { startDaemon } from "./support/daemon.mjs";
import { lines, root } from "./support/repository.mjs";
import { wireTo } from "./support/wire.mjs";

const folder = "ipc/protocol/conformance/testdata";
const deadlineMs = 15_000;
let daemon;
let wire;

before(async () => {
  daemon = await startDaemon();
  wire = await wireTo(daemon.url.slice("unix:".length));
});
after(async () => {
  await wire?.close();
  await daemon?.stop();
});

for (const file of readdirSync(root + folder)) {
  const script = lines(`${folder}/${file}`);
  // A client that is right sends neither binary frames nor bytes that are no text.
  const impossible = script.some((line) => "sendBinary" in line || "sendBytes" in line);
  test(`transcript ${file}`, { skip: impossible && "the client cannot send that" }, async () => {
    const player = await Player.open();
    for (const line of script) await player.play(line);
  });
}

class Player {
  #messages = [];
  #wake = () => {};
  #ended;
  #ignored = new Set();
  #captured = new Map();

  static async open() {
    const player = new Player();
    await player.#connect();
    return player;
  }

  // Nothing more is heard of the connection before.
  async #connect() {
    if (this.channel) Object.assign(this.channel, { take() {}, gone() {} });
    this.#messages = [];
    this.#ended = undefined;
    this.channel = await transportOf({ url: wire.url, maxMessageBytes: 64 << 20 })(AbortSignal.timeout(deadlineMs));
    this.channel.take = (text) => this.#push(JSON.parse(text));
    this.channel.gone = (code) => {
      this.#ended = code;
      this.#wake();
    };
  }

  #push(message) {
    if (!this.#ignored.has(message.method)) this.#messages.push(message);
    this.#wake();
  }

  async #next() {
    const timer = setTimeout(() => this.#push({ nothing: `came in ${deadlineMs} ms` }), deadlineMs);
    while (this.#messages.length === 0 && this.#ended === undefined) await new Promise((resolve) => (this.#wake = resolve));
    clearTimeout(timer);
    return this.#messages.shift() ?? { ended: this.#ended };
  }

  #fill(message) {
    return JSON.parse(JSON.stringify(message), (_, value) => (typeof value === "string" && this.#captured.has(value) ? this.#captured.get(value) : value));
  }

  async play(line) {
    if (line.send !== undefined) return this.channel.send(JSON.stringify(this.#fill(line.send)));
    if (line.sendText !== undefined) return this.channel.send(line.sendText);
    if (line.reconnect !== undefined) wire.cut();
    if (line.reconnect !== undefined || line.connect !== undefined) return this.#connect();
    if (line.close !== undefined) return this.channel.close(line.close);
    if (line.ignore !== undefined) {
      for (const method of line.ignore) this.#ignored.add(method);
      this.#messages = this.#messages.filter(({ method }) => !this.#ignored.has(method));
      return;
    }
    if (line.expect !== undefined) return this.#expectAll([line.expect]);
    if (line.expectAll !== undefined) return this.#expectAll(line.expectAll);
    if (line.await !== undefined) {
      for (let got; !this.#matches(this.#fill(line.await), (got = await this.#next())); ) assert.ok(!("ended" in got) && !("nothing" in got), JSON.stringify(got));
      return;
    }
    if (line.expectClose !== undefined) return assert.equal((await this.#next()).ended, line.expectClose);
    assert.ok("" in line, `nothing to do in ${JSON.stringify(line)}`);
  }

  async #expectAll(patterns) {
    const left = this.#fill(patterns);
    while (left.length > 0) {
      const got = await this.#next();
      const at = left.findIndex((want) => this.#matches(want, got));
      assert.ok(at >= 0, `got ${JSON.stringify(got)}, want ${JSON.stringify(left)}`);
      left.splice(at, 1);
    }
  }

  #matches(want, got) {
    if (typeof want === "string") {
      if (want.startsWith("$=")) return this.#captured.set(`$${want.slice(2)}`, got) !== undefined;
      if (want === "$any") return true;
      if (want === "$text") return typeof got === "string" && got !== "";
      if (want === "$number") return typeof got === "number";
    }
    if (want === null || typeof want !== "object") return Object.is(want, got);
    if (got === null || typeof got !== "object" || Array.isArray(want) !== Array.isArray(got)) return false;
    if (Array.isArray(want)) return want.length === got.length && want.every((item, i) => this.#matches(item, got[i]));
    return Object.entries(want).every(([key, value]) => (value === "$absent" ? !(key in got) : key in got && this.#matches(value, got[key])));
  }
}

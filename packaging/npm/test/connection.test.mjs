// What the client makes of a service that misbehaves, and of the ends of connections.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import test from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ExecutorError, RemoteExecutor } from "../src/index.js";
import { parseAddress } from "../src/transport/address.js";
import { packageRoot } from "./support/repository.mjs";
import { outcome, serveScript } from "./support/service.mjs";

async function withScript(script, use, options = {}) {
  const { service: serviceOptions, ...rest } = options;
  const service = await serveScript(script, serviceOptions);
  const executor = new RemoteExecutor({ url: service.url, connectTimeoutMs: 3000, ...rest });
  try {
    await use(executor, service);
  } finally {
    await executor.close();
    await service.close();
  }
  assert.deepEqual(service.failures, []);
}

const fails = (promise, type, text = /./) => assert.rejects(promise, (error) => error instanceof ExecutorError && error.type === type && text.test(error.message));

const answerAll = async (peer) => {
  for (let m; (m = await peer.receive()) !== undefined; ) {
    if (m.method === "execute") peer.send({ id: m.id, result: outcome(1) });
    else if (m.id !== undefined) peer.send({ id: m.id, result: {} });
  }
};

test("messages that nobody expects reach nobody", async () => {
  await withScript(async (peer) => {
    const { id, params } = await peer.receive();
    for (const message of [
      { id: 999, result: {} }, { id: "x", error: { code: 1, message: "x" } }, { id: null, error: { code: -32700, message: "x" } },
      { method: "execution.log", params: { execution: "other", level: "log", time: 1, text: "x" } }, { method: "execution.log", params: [1] },
      { method: "execution.state", params: { execution: 5 } }, { method: "tool.cancel", params: { execution: params.execution, call: 77 } },
      { method: "tool.cancel" }, { method: "tool.call", params: {} }, { method: "no.such" },
    ]) peer.send(message);
    peer.send({ id, result: outcome(1) });
    await answerAll(peer);
  }, async (executor) => {
    const heard = [];
    assert.equal((await executor.execute({ code: "x", onLog: (l) => heard.push(l), onState: (s) => heard.push(s) })).value, 1);
    assert.deepEqual(heard, []);
  });
});

test("requests that the client cannot serve are answered by errors", async () => {
  const answers = [];
  await withScript(async (peer) => {
    const { id, params } = await peer.receive();
    for (const request of [
      { method: "no.such", params: {} }, { method: "fetch", params: {} },
      { method: "tool.call", params: { execution: "other", call: 1, provider: "p", path: ["t"], args: [] } },
      { method: "tool.call", params: { execution: params.execution, call: 1, provider: "p", path: ["constructor"], args: [] } },
      { method: "tool.call", params: { execution: params.execution, call: 2, provider: "__proto__", path: ["x"], args: [] } },
      { method: "tool.call", params: { execution: params.execution, call: 3, provider: "p", path: ["t"], args: [{ "@unknown": 1 }] } },
      { method: "tool.call", params: { execution: params.execution, call: 4, provider: "p", path: "t", args: 5 } },
      { method: "fetch", params: { execution: params.execution, call: 5, request: { method: "GET", url: "http://x/", headers: [], body: null } } },
    ]) {
      peer.send({ id: answers.length, ...request });
      answers.push(await peer.receive());
    }
    peer.send({ id, result: outcome(1) });
    await answerAll(peer);
  }, async (executor) => {
    await executor.execute({ code: "x", providers: { p: { t: () => 1 } } });
    assert.deepEqual(answers.map(({ error }) => error?.code), [-32601, ...Array(7).fill(-32000)]);
  });
});

test("a call with the number of one that runs is no second call", async () => {
  let begun = 0;
  await withScript(async (peer) => {
    const { id, params } = await peer.receive();
    const call = { method: "tool.call", params: { execution: params.execution, call: 1, provider: "p", path: ["t"], args: [] } };
    peer.send({ id: 1, ...call });
    peer.send({ id: 2, ...call });
    const answer = await peer.receive();
    assert.equal(answer.id, 2);
    assert.ok(answer.error);
    peer.send({ id, result: outcome(1) });
    await answerAll(peer);
  }, async (executor) => {
    await executor.execute({ code: "x", providers: { p: { t: () => new Promise(() => begun++) } } });
    assert.equal(begun, 1);
  });
});

for (const [name, end, text] of [
  ["abruptly", (peer) => peer.socket.destroy(), /^connection lost$/],
  ["in order", (peer) => peer.close(1001, "restarting"), /restarting/],
  ["without a status", (peer) => peer.frame(0x88, Buffer.alloc(0)), /1005/],
  ["with nonsense", (peer) => peer.sendText('{"no":"message"}'), /no message/],
  ["with a key twice", (peer) => peer.sendText('{"jsonrpc":"2.0","id":2,"id":3,"result":{}}'), /no message/],
  ["with a huge message", (peer) => peer.sendText("x".repeat(3 << 20)), /more than/],
  ["with a binary frame", (peer) => peer.frame(0x82, Buffer.from("{}")), /text/],
  ["with a message in too many pieces", (peer) => {
    peer.frame(1, Buffer.from("x"));
    peer.socket.write(Buffer.from([0, 1, 0x78]).toString("latin1").repeat(40_000), "latin1");
    peer.close(1001, "restarting");
  }, /more than/],
  ["with text that is no UTF-8", (peer) => peer.frame(0x81, Buffer.from([0xff])), /UTF-8/],
  ["with an extension", (peer) => peer.frame(0xc1, Buffer.from("{}")), /extension/],
  ["with a fragment of nothing", (peer) => peer.frame(0x80, Buffer.from("{}")), /order/],
  ["with a masked frame", (peer) => peer.socket.write(Buffer.from([0x81, 0x80, 1, 2, 3, 4])), /mask/],
]) {
  test(`a connection that ends ${name} ends the programs on it`, async () => {
    await withScript(async (peer) => {
      await peer.receive();
      end(peer);
    }, async (executor) => {
      await fails(executor.execute({ code: "x" }), "internal", /^connection lost/);
      await fails(executor.execute({ code: "x" }), "internal", text);
    }, { maxMessageBytes: 1 << 20 });
  });
}

test("what comes after the end of a connection is not heard", async () => {
  await withScript(async (peer) => {
    const { id } = await peer.receive();
    peer.socket.cork();
    peer.close(1000, "enough");
    peer.send({ id, result: outcome(1) });
    peer.socket.uncork();
  }, (executor) => fails(executor.execute({ code: "x" }), "internal", /enough/));
});

test("outcomes that cannot be read are errors", async () => {
  for (const result of [null, {}, { status: "ok" }, { status: "maybe", value: 1 }, { status: "ok", value: { "@no": 1 } }, { status: "error" }]) {
    await withScript(async (peer) => {
      const { id } = await peer.receive();
      peer.send({ id, result });
      await answerAll(peer);
    }, (executor) => assert.rejects(executor.execute({ code: "x" }), (error) => error.type === "internal", JSON.stringify(result)));
  }
});

test("errors of an unknown type keep their code", async () => {
  await withScript(async (peer) => {
    const { id } = await peer.receive();
    peer.send({ id, error: { code: -32043, message: "full", data: { type: "brand_new", retryAfterMs: 5 } } });
    await answerAll(peer);
  }, (executor) => fails(executor.execute({ code: "x" }), "overloaded", /full/));
});

test("messages in fragments and pings between them are read", async () => {
  let ponged;
  const pong = new Promise((resolve) => (ponged = resolve));
  await withScript(async (peer) => {
    const { id } = await peer.receive();
    const text = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: outcome("é😀") }));
    for (let i = 0; i < text.length; i++) {
      peer.frame((i === 0 ? 1 : 0) | (i === text.length - 1 ? 0x80 : 0), text.subarray(i, i + 1));
      if (i === 3) peer.frame(0x89, Buffer.from("still there?"));
    }
    ponged(await peer.receive());
    await answerAll(peer);
  }, async (executor) => {
    assert.equal((await executor.execute({ code: "x" })).value, "é😀");
    const { opcode, body } = await pong;
    assert.equal(opcode, 10);
    assert.equal(body.toString(), "still there?");
  });
});

test("a service that is silent is lost", async () => {
  await withScript(async (peer) => {
    const { method } = await peer.receive();
    assert.equal(method, "execute");
    const probe = await peer.receive();
    assert.equal(probe.method, "cancel");
    peer.send({ id: probe.id, result: { cancelled: false } });
    await peer.receive(); // and does not answer that one
  }, (executor) => fails(executor.execute({ code: "x" }), "internal", /silent/), { keepAliveMs: 30 });
});

test("a session that drains finishes what it has, and new programs go to another", async () => {
  let sessions = 0;
  let secondRan;
  const release = new Promise((resolve) => (secondRan = resolve));
  await withScript(async (peer) => {
    const mine = ++sessions;
    const { id } = await peer.receive();
    if (mine === 1) {
      peer.send({ method: "session.draining", params: { deadlineMs: 1000 } });
      peer.send({ method: "execution.log", params: { execution: "first", level: "log", time: 0, text: "draining" } });
      await release;
    }
    peer.send({ id, result: outcome(mine) });
    await answerAll(peer);
  }, async (executor) => {
    let heard;
    const draining = new Promise((resolve) => (heard = resolve));
    const first = executor.execute({ code: "x", execution: "first", onLog: heard });
    await draining;
    assert.equal((await executor.execute({ code: "y" })).value, 2);
    secondRan();
    assert.equal((await first).value, 1);
  });
});

test("what a draining session did not accept goes to another, once", async () => {
  const got = [];
  let sessions = 0;
  await withScript(async (peer) => {
    const mine = ++sessions;
    const { id, params } = await peer.receive();
    got.push([mine, params.code]);
    if (mine === 1) {
      peer.send({ method: "session.draining", params: { deadlineMs: 1000 } });
      return peer.close(1001, "stopping");
    }
    if (mine === 2) return peer.send({ id, error: { code: -32045, message: "the service is stopping" } });
    peer.send({ id, result: outcome("ran") });
    await answerAll(peer);
  }, async (executor) => {
    assert.equal((await executor.execute({ code: "mine" })).value, "ran");
    assert.deepEqual(got, [[1, "mine"], [2, "mine"], [3, "mine"]]);
  });
});

const stopping = { code: -32045, message: "the service is stopping" };

test("a service that is stopping as the first program comes is asked again", async () => {
  let sessions = 0;
  await withScript(async (peer) => {
    const mine = ++sessions;
    const { id } = await peer.receive();
    if (mine === 1) return peer.send({ id, error: stopping });
    if (mine === 2) return peer.close(1001, "stopping");
    peer.send({ id, result: { session: "s", protocol: "1", server: { name: "next" } } });
    await answerAll(peer);
  }, async (executor) => {
    assert.equal((await executor.execute({ code: "x" })).value, 1);
    assert.equal(sessions, 3);
  }, { service: { open: false } });
});

test("one that goes on stopping, or is gone then, is not asked for ever, and its last word is told", async () => {
  for (const gone of [false, true]) {
    let sessions = 0;
    await withScript(async (peer) => {
      const opening = await peer.receive();
      if (opening !== undefined && (++sessions === 1 || !gone)) peer.send({ id: opening.id, error: stopping });
    }, async (executor, service) => {
      const failed = fails(executor.execute({ code: "x" }), "draining", /the service is stopping/);
      if (gone) {
        while (sessions === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        await new Promise((resolve) => setTimeout(resolve, 20));
        await service.close();
      }
      await failed;
    }, { connectTimeoutMs: 500, service: { open: false } });
    assert.ok(sessions < 20);
  }
});

test("a service that never answers is waited for as long as was asked, whatever is collected meanwhile", async () => {
  setFlagsFromString("--expose-gc");
  const collecting = setInterval(runInNewContext("gc"), 20);
  try {
    await withScript(() => {}, (executor) => fails(executor.execute({ code: "x" }), "internal", /too long/), { connectTimeoutMs: 300, service: { open: false } });
  } finally {
    clearInterval(collecting);
  }
});

test("a session makes way at its age", async () => {
  let sessions = 0;
  await withScript((peer) => (sessions++, answerAll(peer)), async (executor) => {
    await executor.execute({ code: "1" });
    await new Promise((resolve) => setTimeout(resolve, 20));
    await executor.execute({ code: "2" });
    assert.equal(sessions, 2);
  }, { maxSessionAgeMs: 10 });
});

test("an acknowledgement of what was not sent ends the session", async () => {
  await withScript(async (peer) => {
    await peer.receive();
    peer.send({ method: "session.ack", params: { received: 2 } });
  }, (executor) => fails(executor.execute({ code: "x" }), "internal", /no message/), { service: { opened: { session: "s", protocol: "1", server: { name: "script" }, resume: { token: "t", windowMs: 1000 } } } });
});

test("a session whose connections all break at once is resumed with pauses", async () => {
  let connections = 0;
  const resume = { token: "t", windowMs: 1000 };
  await withScript(async (peer) => {
    connections++;
    await peer.receive();
    peer.socket.destroy();
  }, async (executor) => {
    await fails(executor.execute({ code: "x", signal: AbortSignal.timeout(1000) }), "cancelled");
    assert.ok(connections > 1 && connections < 50, `${connections} connections in a second`);
  }, { cancelGraceMs: 1, service: { opened: { session: "s", protocol: "1", server: { name: "script" }, resume } } });
});

test("a session whose connections carry a message each, to the service, is resumed without pauses", { timeout: 20_000 }, async () => {
  const programs = 200; // after which pauses would come to 40 s
  let connections = 0;
  const requests = [];
  const opened = () => ({ session: "s", protocol: "1", server: { name: "script" }, received: connections++, resume: { token: "t", windowMs: 1000 } });
  await withScript(async (peer) => {
    requests.push(await peer.receive());
    if (requests.length < programs) return peer.socket.destroy();
    for (const { id } of requests) peer.send({ id, result: outcome(1) });
  }, async (executor) => {
    const made = await Promise.all(Array.from({ length: programs }, () => executor.execute({ code: "x" })));
    assert.equal(made.length, programs);
    assert.equal(connections, programs);
    assert.equal(new Set(requests.map(({ params }) => params.execution)).size, programs);
  }, { service: { opened } });
});

test("handshakes that are none", async () => {
  for (const [head, text] of [
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", /HTTP status 200/],
    ["HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: no\r\nSec-WebSocket-Protocol: executor.v1\r\n\r\n", /does not speak/],
    ["SSH-2.0-OpenSSH\r\n\r\n", /HTTP status/],
    ["x".repeat(20_000), /no end/],
    [`HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x${" ".repeat(63_000)}x\r\n\r\n`, /does not speak|no end/],
  ]) {
    const began = Date.now();
    await withScript((peer) => void setTimeout(() => peer.socket.destroy(), 100), (executor) => fails(executor.execute({ code: "x" }), "internal", text), { service: { head, open: false } });
    assert.ok(Date.now() - began < 3000, "it took long to read");
  }
});

test("what comes in one piece with the answer to the handshake is heard", async () => {
  const text = JSON.stringify({ jsonrpc: "2.0", id: 0, result: { protocol: "1" } });
  await withScript(async (peer) => {
    assert.equal((await peer.receive()).method, "session.open"); // which has been answered
    await answerAll(peer);
  }, async (executor) => {
    assert.equal((await executor.execute({ code: "x" })).value, 1);
  }, { service: { open: false, early: `\x81${String.fromCharCode(text.length)}${text}` } });
});

test("where the first answer refuses the session a second one opens none", async () => {
  const answers = ["0", "1"].map((protocol) => JSON.stringify({ jsonrpc: "2.0", id: 0, result: { protocol, resume: { token: "t", windowMs: 1000 } } }));
  let connections = 0;
  await withScript(async () => connections++, async (executor) => {
    await fails(executor.execute({ code: "x" }), "unsupported_protocol");
    await new Promise((resolve) => setTimeout(resolve, 200)); // one that was open would be found silent, and resumed
    assert.equal(connections, 1);
  }, { keepAliveMs: 20, service: { open: false, early: answers.map((text) => `\x81${String.fromCharCode(text.length)}${text}`).join("") } });
});

test("another version of the protocol is refused", async () => {
  await withScript(async (peer) => void (await peer.receive()), (executor) => fails(executor.execute({ code: "x" }), "unsupported_protocol"), { service: { opened: { protocol: "0" } } });
});

test("where nobody listens the first program fails at once", async () => {
  const began = Date.now();
  await fails(new RemoteExecutor({ url: "unix:/nowhere/at/all" }).execute({ code: "1" }), "internal", /cannot connect to unix:\/nowhere/);
  assert.ok(Date.now() - began < 5000);
});

test("addresses", () => {
  for (const [address, want] of [
    ["unix:/run/x", { path: "/run/x" }], ["unix:///run/x", { path: "/run/x" }],
    ["tcp://127.0.0.1:7410", { url: "ws://127.0.0.1:7410/v1/session" }], ["tcp://[::1]:7410/", { url: "ws://[::1]:7410/v1/session" }],
    ["ws://host:1/base", { url: "ws://host:1/base/v1/session" }], ["ws://host:1/v1/session", { url: "ws://host:1/v1/session" }],
    ["wss://host", { url: "wss://host/v1/session" }],
  ]) {
    const { path, url } = parseAddress(address);
    assert.deepEqual(path === undefined ? { url: url.href } : { path }, want);
  }
  for (const bad of ["unix:relative", "unix:", "/run/x", "tcp://host", "tcp://:80", "tcp://host:1/path", "ws://user@host:1", "http://host:1", "tcp://host:port", ""]) {
    assert.throws(() => new RemoteExecutor({ url: bad }), TypeError, bad);
  }
});

test("options that make no sense are refused", () => {
  for (const options of [{ keepAliveMs: 0 }, { maxMessageBytes: -1 }, { connectTimeoutMs: "x" }, { keepAliveMs: Infinity }, { cancelGraceMs: 2 ** 31 }, { token: "secret\n" }]) assert.throws(() => new RemoteExecutor({ url: "unix:/x", ...options }), TypeError);
  assert.throws(() => new RemoteExecutor({ url: "unix:/x", tokens: "x" }), /no option tokens/);
  assert.throws(() => new RemoteExecutor(), TypeError);
});

test("an idle executor does not keep the process alive", async () => {
  const service = await serveScript(answerAll);
  const code = `import { RemoteExecutor } from "${packageRoot}src/index.js"; console.log((await new RemoteExecutor({ url: "${service.url}" }).execute({ code: "1" })).value)`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (text) => (out += text));
  const status = await new Promise((resolve) => child.on("exit", resolve));
  await service.close();
  assert.equal(out, "1\n");
  assert.equal(status, 0);
});

test("a WebSocket class of the caller's own is used", { skip: globalThis.WebSocket === undefined && "this runtime has no WebSocket" }, async () => {
  await withScript(answerAll, async (executor) => {
    assert.equal((await executor.execute({ code: "1" })).value, 1);
  }, { webSocket: globalThis.WebSocket });
});

/** A WebSocket as pages have it, to a service that answers session.open and nothing after it. */
class Silent extends EventTarget {
  protocol = "executor.v1";

  constructor() {
    super();
    queueMicrotask(() => this.dispatchEvent(new Event("open")));
  }

  send(text) {
    const { id, method } = JSON.parse(text);
    const opened = JSON.stringify({ jsonrpc: "2.0", id, result: { protocol: "1" } });
    if (method === "session.open") this.dispatchEvent(new MessageEvent("message", { data: opened }));
  }

  close(code = 1000) {
    if (code !== 1000 && !(code >= 3000 && code < 5000)) throw new RangeError(`a page may not close with ${code}`);
  }
}

test("a WebSocket of a page is given up when the service is silent", async () => {
  const executor = new RemoteExecutor({ url: "ws://a.test", webSocket: Silent, keepAliveMs: 10 });
  await fails(executor.execute({ code: "1" }), "internal", /silent/);
  await executor.close();
});

test("a silent WebSocket of a page is left only when the session is on another one", async () => {
  const seen = [];
  class Resumable extends Silent {
    send(text) {
      const { id, method, params } = JSON.parse(text);
      if (method !== "session.open") return;
      seen.push(params.resume === undefined ? "open" : "resume");
      const result = { protocol: "1", received: 0, resume: { token: "t", windowMs: 5000 } };
      this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify({ jsonrpc: "2.0", id, result }) }));
    }

    close(code) {
      super.close(code);
      seen.push("close");
      this.dispatchEvent(Object.assign(new Event("close"), { code: code ?? 1005, reason: "" }));
    }
  }
  const executor = new RemoteExecutor({ url: "ws://a.test", webSocket: Resumable, keepAliveMs: 10, cancelGraceMs: 10 });
  const running = executor.execute({ code: "1" });
  while (seen.length < 5) await new Promise((resolve) => setTimeout(resolve, 5));
  await executor.close();
  await fails(running, "cancelled", /closed/);
  assert.deepEqual(seen.slice(0, 5), ["open", "resume", "close", "resume", "close"]);
});

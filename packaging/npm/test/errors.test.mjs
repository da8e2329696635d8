import assert from "node:assert/strict";
import test from "node:test";
import { errorTypes, ExecutorError } from "../src/index.js";
import { linkOf } from "../src/link.js";
import { read } from "./support/repository.mjs";

test("the types, codes and flags are those of ipc/protocol/errors.go", () => {
  const source = read("ipc/protocol/errors.go");
  const names = Object.fromEntries([...source.matchAll(/^\t(\w+)\s+Type = "(\w+)"\s+\/\/ /gm)].map(([, go, wire]) => [go, wire]));
  const rows = [...source.matchAll(/^\t\{(\w+), (-\d+), (true|false), (true|false), \d+\},$/gm)];
  const want = rows.map(([, go, code, ran, retryable]) => ({ type: names[go], code: Number(code), ran: ran === "true", retryable: retryable === "true" }));
  assert.ok(want.length > 25);
  assert.deepEqual(errorTypes.map((info) => ({ ...info })), want);
  const declared = read("packaging/npm/src/index.d.ts").match(/export type ErrorType =([^;]*);/)[1];
  assert.deepEqual([...declared.matchAll(/"(\w+)"/g)].map(([, type]) => type), want.map(({ type }) => type));
});

test("the limits are those of ipc/protocol/execute.go", () => {
  const struct = read("ipc/protocol/execute.go").match(/type Limits struct \{([^}]*)\}/)[1];
  const want = [...struct.matchAll(/json:"(\w+),omitempty"/g)].map(([, name]) => name);
  const declared = read("packaging/npm/src/index.d.ts").match(/export interface Limits \{([^}]*)\}/)[1];
  assert.deepEqual([...declared.matchAll(/(\w+)\?: number/g)].map(([, name]) => name), want);
});

test("an error is told by its type", () => {
  const error = new ExecutorError("overloaded", "full");
  assert.ok(error instanceof Error && error.retryable && !error.ran && error.code === -32043);
  assert.equal(String(error), "ExecutorError: full");
});

// resumed is a link whose connection broke, and whom the service answers with an error of that type when it comes again. The
// attempts are counted.
async function resumed({ type, code }) {
  let attempts = 0;
  let first;
  let tell; // of the first of two: the end, or a second attempt; a third may follow at once
  const told = new Promise((resolve) => (tell = (ended) => resolve({ type, attempts, ended })));
  const link = linkOf(async () => {
    const channel = { hold() {}, close() {}, send };
    first ??= channel;
    if (channel !== first && ++attempts === 2) tell(false);
    return channel;

    function send() {
      const answer = channel === first
        ? { result: { protocol: "1", resume: { token: "t", windowMs: 60_000 } } }
        : { error: { code, message: "no", data: { type } } };
      queueMicrotask(() => channel.take(JSON.stringify({ jsonrpc: "2.0", id: 0, ...answer })));
    }
  }, { keepAliveMs: 60_000 }, () => {}, () => tell(true), () => true);
  await link.connect(new AbortController().signal);
  first.gone(1006, "");
  await told;
  link.close();
  return told;
}

test("a session that cannot be resumed ends at once, unless the refusal may pass", async () => {
  const refusals = errorTypes.filter(({ ran }) => !ran);
  const want = refusals.map(({ type, retryable }) => ({ type, attempts: retryable ? 2 : 1, ended: !retryable }));
  assert.deepEqual(await Promise.all(refusals.map(resumed)), want);
});

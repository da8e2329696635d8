import assert from "node:assert/strict";
import test from "node:test";
import { errorTypes, ExecutorError } from "../src/index.js";
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

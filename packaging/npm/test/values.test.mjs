// The value codec against the vectors that all codecs are proven against.
import assert from "node:assert/strict";
import test from "node:test";
import { RemoteExecutor } from "../src/index.js";
import { decode } from "../src/values/decode.js";
import { encode } from "../src/values/encode.js";
import { parse } from "../src/values/json.js";
import { startDaemon } from "./support/daemon.mjs";
import { lines } from "./support/repository.mjs";
import { sameValue } from "./support/same.mjs";

// What is not in this runtime. Each name is tried, so that a newer runtime runs them all.
const lacks = [["Float16Array", globalThis.Float16Array === undefined]].filter(([, lacking]) => lacking).map(([name]) => name);

for (const vector of lines("ipc/protocol/testdata/values.jsonl")) {
  const skip = lacks.includes(vector.name) && "this runtime lacks it";
  test(`vector: ${vector.name}`, { skip }, async () => {
    if (vector.invalid !== undefined) {
      assert.throws(() => decode(vector.invalid), { name: /^(SyntaxError|ValueError)$/ }, vector.why);
      return;
    }
    const want = vector.value;
    if (vector.js !== undefined && !vector.js.includes("length=4294967295")) {
      const text = await encode((0, eval)(vector.js));
      assert.ok(sameValue(JSON.parse(text), want), `encode gives ${text}`);
    }
    const value = decode(JSON.stringify(want));
    if (JSON.stringify(want).includes("@handle")) return;
    const again = await encode(value);
    assert.ok(sameValue(JSON.parse(again), want), `encode∘decode gives ${again}`);
  });
}

test("decoding keeps identity", () => {
  const list = decode('[{"@date":5},{"@ref":"/0"},{"@date":5}]');
  assert.equal(list[0], list[1]);
  assert.notEqual(list[0], list[2]);
  const round = decode('{"a":{"@map":[["k",[]]]},"b":{"@ref":"/a/@map/0/1"},"c":{"@ref":""}}');
  assert.equal(round.c, round);
  assert.equal(round.b, round.a.get("k"));
});

test("values that cannot cross are refused by their place", async () => {
  for (const [value, path] of [
    [() => 1, ""],
    [{ a: [1, Symbol("s")] }, "/a/1"],
    [{ "a/b": { "~": new WeakMap() } }, "/a~1b/~0"],
    [new Map([["k", Promise.resolve()]]), "/@map/0/1"],
    [Object.assign(new Error("x"), { f() {} }), "/@error/f"],
    [2n ** 65536n, ""],
  ]) {
    await assert.rejects(async () => encode(value), (error) => error.name === "ValueError" && error.path === path);
  }
});

test("nesting without end is refused", async () => {
  let value = 0;
  for (let i = 0; i < 2001; i++) value = [value];
  await assert.rejects(async () => encode(value), /deeper/);
  assert.throws(() => decode("[".repeat(2001) + "]".repeat(2001)), /deeper/);
  assert.throws(() => decode("[".repeat(500_000) + "]".repeat(500_000)), /deeper/);
  await encode(value[0]);
});

test("a class string that lies is not believed", async () => {
  for (const name of ["Date", "Map", "Set", "ArrayBuffer", "Number", "URL", "RegExp"]) {
    const liar = Object.create({ [Symbol.toStringTag]: name }, { a: { value: 1, enumerable: true } });
    assert.equal(await encode(liar), '{"a":1}', name);
  }
});

// Objects of another realm, as test runners and frames make them.
test("values of another realm are known by what they are", async () => {
  const { runInNewContext } = await import("node:vm");
  const value = runInNewContext("({d:new Date(5),m:new Map([[1,2]]),s:new Set([1]),b:new Uint8Array([1]),e:new RangeError('far'),x:Object(1n)})");
  const got = JSON.parse(await encode(value));
  const want = { d: { "@date": 5 }, m: { "@map": [[1, 2]] }, s: { "@set": [1] }, b: { "@bytes": "AQ==" }, e: { "@error": { name: "RangeError", message: "far" } }, x: { "@boxed": [{ "@bigint": "1" }] } };
  assert.ok(sameValue(got, want), JSON.stringify(got));
});

test("an array of holes costs what is in it", async () => {
  const array = Object.assign([], { 2: "a", 3: "b", 4294967290: "c", 4294967295: "no item", "05": "none either" });
  assert.equal(array.length, 4294967291);
  array.length += 4;
  assert.equal(await encode(array), '[{"@hole":2},"a","b",{"@hole":4294967286},"c",{"@hole":4}]');
});

test("each property is read once, and a getter that throws is the caller's error", async () => {
  let reads = 0;
  const value = { get a() { return ++reads; } };
  assert.equal(await encode([value]), '[{"a":1}]');
  assert.equal(reads, 1);
  await assert.rejects(async () => encode({ get a() { throw new RangeError("mine"); } }), RangeError);
});

test("places in the host's files do not leave it", async () => {
  const text = await encode(new Error("x"));
  assert.doesNotMatch(text, /stack/);
});

test("long base64 is read and written as it is", async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(50_001));
  assert.deepEqual(decode(await encode(bytes)), bytes);
});

// The client in Go has the same test (daemon/e2e/values_test.go).
test("text with long base64 means what it means to JSON.parse", () => {
  const body = "AQID".repeat(5000);
  const bytes = `{"@bytes":"${body}"}`;
  const inText = JSON.stringify(bytes);
  const same = [
    bytes,
    `[${bytes},{"a":${bytes}},{"@bytes":"AQID"}]`,
    `{"@bytes":"${body}","more":[${bytes}]}`,
    `{"@bytes":"${body}","@bytes2":"${body}"}`,
    `{"a":${inText},"b":${bytes}}`,
    `{"\\"@bytes":"${body}","{":${inText}}`,
    `[${bytes},"\\u00000",{"@bytes":"\\u00000"}]`,
    `[${bytes},"\\\\u00000"]`,
    `{"@bytes":"${body}\\n"}`,
    `{"@bytes":"${body}-_*é"}`,
    `{"@bytes":{"@bytes":"${body}"}}`,
  ];
  for (const text of same) assert.deepEqual(parse(text), JSON.parse(text), text.replaceAll(body, "…"));
  const wrong = [
    `{"@bytes":"${body}`,
    `{"@bytes":"${body}\n"}`,
    `{"@bytes":"${body}\0"}`,
    `{"@bytes":"${body}""}`,
    `"{"@bytes":"${body}"}"`,
    `{"@bytes":"${body}","@bytes":"${body}"}`,
    `[{"a":1,"a":2},${bytes}]`,
  ];
  for (const text of wrong) assert.throws(() => parse(text), SyntaxError, text.replaceAll(body, "…"));
});

test("values survive the whole way: to a program, to a tool, back, and out again", async () => {
  const apart = ({ js, value, name }) => js === undefined || value === undefined || lacks.includes(name) || /@ref|@handle|@error|length=4294967295/.test(JSON.stringify(value) + js);
  const leaves = lines("ipc/protocol/testdata/values.jsonl").filter((vector) => !apart(vector)).map(({ value }) => value);
  assert.ok(leaves.length > 100);
  let seed = 7;
  const random = (n) => Math.floor(((seed = (seed * 48271) % 2147483647) / 2147483647) * n);
  const grow = (depth) => {
    if (depth === 0 || random(3) === 0) return leaves[random(leaves.length)];
    const items = Array.from({ length: random(5) }, () => grow(depth - 1));
    return [
      () => items,
      () => ({ "@set": [items] }),
      () => ({ "@map": items.map((item, i) => [i, item]) }),
      () => ({ ...Object.fromEntries(items.map((item, i) => [["a", "then", "", "é😀", "toJSON", "@x"][random(6)] + i, item])), last: 0 }),
      () => [{ "@hole": 2 }, ...items],
    ][random(5)]();
  };
  const daemon = await startDaemon();
  const executor = new RemoteExecutor({ url: daemon.url });
  try {
    for (let i = 0; i < 60; i++) {
      const tree = grow(4);
      const { value } = await executor.execute({ code: "async (x) => [x, await tools.echo(x)]", input: decode(JSON.stringify(tree)), providers: { tools: { echo: (x) => x } } });
      const got = JSON.parse(await encode(value));
      assert.ok(sameValue(got, [tree, tree]), `${JSON.stringify(tree)} came back as ${JSON.stringify(got)}`);
    }
  } finally {
    await executor.close();
    await daemon.stop();
  }
});

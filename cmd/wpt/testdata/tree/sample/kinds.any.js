// META: title=what a program finds
// META: timeout=long
// META: script=helper.js
// META: script=/sample/data/second.js

// A comment may stand here.
test(() => { if (fromHelper !== "helped") throw new Error("no helper"); }, "a relative helper is there");
test(() => { if (second !== 2) throw new Error("no second"); }, "an absolute helper is there");
test(() => { if (thisOfHelper() !== globalThis) throw new Error("strict"); }, "helpers are not strict");
test(() => { if (GLOBAL.isWindow()) throw new Error("a window"); }, "the global is no window");
test(() => { if (location.href !== "http://web-platform.test:8000/sample/kinds.any.html") throw location.href; }, "the address");
test(() => { throw new Error("as meant"); }, "fails");
promise_test(async () => {
  const response = await fetch("data/answer.json?x#y");
  if ((await response.json()).answer !== 42) throw new Error("another answer");
  if (response.headers.get("content-type") !== "application/json") throw new Error("another type");
}, "a data file");
promise_test(async () => {
  const reply = await fetch("/fetch/api/resources/echo-content.py", { method: "POST", body: "there and back" });
  if (await reply.text() !== "there and back") throw new Error("no echo");
}, "the echo");
promise_test(() => fetch("/elsewhere").then(() => { throw new Error("found"); }, () => {}), "nothing else is fetched");

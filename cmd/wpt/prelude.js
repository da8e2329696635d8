// Runs before testharness.js: gives a program what tests take for granted in a page, carries the suite's data files, and
// hands over what the harness found. config: {path, search, base, timeoutMs, pretendWindow, files}.
(function (config) {
  "use strict";
  const { stringify } = JSON;
  const { hasOwn, defineProperty } = Object;
  const { setTimeout, clearTimeout, Promise, Request, Response, Uint8Array } = globalThis;
  const realFetch = globalThis.fetch;

  const define = (name, value) =>
    defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });

  define("GLOBAL", { isWindow: () => false, isWorker: () => false, isShadowRealm: () => false });
  const { protocol, host, hostname, port } = new URL(config.base);
  define("location", {
    href: config.base + config.path + config.search,
    origin: config.files === null ? config.base : "null", // what comes from nowhere has an opaque origin
    protocol, host, hostname, port,
    pathname: config.path, search: config.search, hash: "", toString() { return this.href; },
  });
  if (config.pretendWindow) {
    // idlharness.js has to know which interfaces the global exposes; ECMA-429 means those of a window.
    const Window = function Window() { throw new TypeError("Illegal constructor"); };
    defineProperty(Window, Symbol.hasInstance, { value: (object) => object === globalThis });
    define("Window", Window);
  }

  // ---- data files

  function pathOf(address) {
    const end = address.search(/[?#]/);
    if (end >= 0) address = address.slice(0, end);
    if (address.startsWith(config.base)) address = address.slice(config.base.length);
    else if (/^[a-z][a-z0-9+.-]*:|^\/\//i.test(address)) return null;
    if (address[0] !== "/") address = config.path.replace(/[^/]*$/, "") + address;
    const parts = [];
    for (const part of address.split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "." && part !== "") parts.push(part);
    }
    return "/" + parts.join("/");
  }

  function respond(file) {
    const body = file.text ?? Uint8Array.from(atob(file.base64), (c) => c.charCodeAt(0));
    return new Response(body, { headers: { "content-type": file.type } });
  }

  // The one program of the suite's server that areas without it use: it sends back what it gets.
  const echo = "/fetch/api/resources/echo-content.py";

  if (config.files !== null) {
    const { fetch } = {
      async fetch(input, init) {
        const address = typeof input === "string" ? input : input?.url ?? input?.href;
        const path = typeof address === "string" ? pathOf(address) : null;
        if (path === echo) return new Response(await new Request(config.base + echo, init).text());
        if (path !== null && hasOwn(config.files, path)) return respond(config.files[path]);
        return realFetch(input, init);
      },
    };
    defineProperty(fetch, "length", { value: 1 });
    defineProperty(globalThis, "fetch", { value: fetch, writable: true, enumerable: true, configurable: true });
  }

  // ---- the result

  const maxMessage = 300;
  let finished = false, timer, harness;
  const early = []; // results so far
  const { promise, resolve } = Promise.withResolvers();

  const clip = (text) => (text.length > maxMessage ? `${text.slice(0, maxMessage)}…` : text);
  const record = ({ name, status, message }) => (status === 0 ? [name, 0] : [name, status, clip(String(message ?? ""))]);
  function describe(error) {
    try {
      return clip(error?.message === undefined ? String(error) : `${error.name}: ${error.message}`);
    } catch {
      return "an error that cannot be shown";
    }
  }

  function finish(results, status) {
    if (finished) return;
    finished = true;
    clearTimeout(timer);
    resolve(stringify({ harness: harness ?? { status: status.status, message: clip(String(status.message ?? "")) }, tests: results }));
  }

  function onTimeout() {
    if (finished) return;
    globalThis.timeout();
    setTimeout(() => {
      harness ??= { status: 2, message: "the harness did not complete" };
      finish(early);
    }, 2000);
  }

  define("__wpt", {
    done: promise,
    // Called when testharness.js has run.
    arm() {
      globalThis.add_result_callback((test) => early.push(record(test)));
      globalThis.add_completion_callback((tests, status) => finish(tests.map(record), status));
      timer = setTimeout(onTimeout, config.timeoutMs);
    },
    // A script threw or did not compile: the harness is in error, and tests under way may still finish, as in a page.
    loadError(error) {
      harness = { status: 1, message: `load: ${describe(error)}` };
      try {
        globalThis.done();
      } catch {
        finish(early);
      }
    },
  });
})

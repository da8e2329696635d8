// The console namespace (WHATWG Console, https://console.spec.whatwg.org/). Every call becomes at most one log line of
// the execution; log lines are bounded by the host. Lines of plain text are written here; what needs an object shown, a
// template or a state is done by the part "console".

import { defineNamespace } from "./global.js";
import { define, defineProperty, stringIncludes, toStringTag } from "./primordials.js";

/** Defines globalThis.console over native.log. */
export function installConsole(core) {
  const { native } = core;
  let woken;
  const whole = () => woken ?? (woken = core.need("console").makeConsole());

  function write(level, data) {
    const text = woken === undefined ? plainText(data) : undefined;
    if (text === undefined) whole().write(level, data);
    else native.log(level, text);
  }

  const methods = {
    debug(...data) {
      write("debug", data);
    },
    error(...data) {
      write("error", data);
    },
    info(...data) {
      write("info", data);
    },
    log(...data) {
      write("log", data);
    },
    warn(...data) {
      write("warn", data);
    },
    assert(condition = false, ...data) {
      if (!condition) whole().fail(data);
    },
    clear() {
      whole().clear();
    },
    dir(item = undefined, options = undefined) {
      whole().dir(item);
    },
    dirxml(...data) {
      write("log", data);
    },
    table(tabularData = undefined, properties = undefined) {
      whole().table(tabularData, properties);
    },
    trace(...data) {
      whole().trace(data, methods.trace);
    },
    count(label = "default") {
      whole().count(label);
    },
    countReset(label = "default") {
      whole().countReset(label);
    },
    group(...data) {
      whole().group(data);
    },
    groupCollapsed(...data) {
      whole().group(data);
    },
    groupEnd() {
      whole().groupEnd();
    },
    time(label = "default") {
      whole().time(label);
    },
    timeLog(label = "default", ...data) {
      whole().timeLog(label, data);
    },
    timeEnd(label = "default") {
      whole().timeEnd(label);
    },
  };

  defineNamespace("console", makeNamespace(methods));
}

// The text of a call whose arguments are plain: strings, without anything to substitute, and other primitives that read
// the same in a template. undefined for any other call.
function plainText(data) {
  if (data.length > 1 && typeof data[0] === "string" && stringIncludes(data[0], "%")) return undefined;
  let text = "";
  for (let i = 0; i < data.length; i++) {
    const value = data[i];
    if (!readsTheSame(value)) return undefined;
    text += i === 0 ? `${value}` : ` ${value}`;
  }
  return text;
}

function readsTheSame(value) {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return true;
    case "number":
      return value !== 0 || 1 / value > 0; // not -0
    default:
      return value === null;
  }
}

// A namespace object: an empty prototype of its own between it and Object.prototype, and a class string.
function makeNamespace(methods) {
  const namespace = { __proto__: {} };
  for (const name in methods) define(namespace, name, methods[name]);
  defineProperty(namespace, toStringTag, {
    __proto__: null,
    value: "console",
    writable: false,
    enumerable: false,
    configurable: true,
  });
  return namespace;
}

// The console namespace (WHATWG Console, https://console.spec.whatwg.org/). Every call becomes at most one log line of
// the execution; log lines are bounded by the host.

import { makeFormat } from "./format.js";
import { defineNamespace } from "./global.js";
import { inspectArgument } from "./inspect.js";
import { indentRest } from "./layout.js";
import {
  captureStackTrace,
  dateNow,
  define,
  defineProperty,
  list,
  mapDelete,
  mapGet,
  mapSet,
  min,
  push,
  SafeMap,
  stringIndexOf,
  stringRepeat,
  stringSlice,
  toStringTag,
} from "./primordials.js";
import { ownData } from "./reflect.js";
import { makeTable } from "./table.js";
import { toDOMString } from "./webidl.js";

const maxGroupIndent = 20; // levels; deeper groups are not indented further

/** Defines globalThis.console over native.log. */
export function installConsole(native, settings) {
  const format = makeFormat(native, settings);
  const table = makeTable(native, settings);
  const counts = new SafeMap();
  const timers = new SafeMap();
  let groups = 0;

  function print(level, text) {
    const pad = stringRepeat("  ", min(groups, maxGroupIndent));
    native.log(level, pad === "" ? text : pad + indentRest(text, pad));
  }

  // args after a text that is not a template
  const follow = (text, args) => (args.length === 0 ? text : `${text} ${format(args)}`);

  function elapsed(label) {
    const started = mapGet(timers, label);
    if (started === undefined) print("warn", `Timer '${label}' does not exist`);
    return started === undefined ? undefined : `${label}: ${dateNow() - started}ms`;
  }

  function openGroup(data) {
    if (data.length > 0) print("log", format(data));
    groups++;
  }

  const methods = {
    debug(...data) {
      print("debug", format(data));
    },
    error(...data) {
      print("error", format(data));
    },
    info(...data) {
      print("info", format(data));
    },
    log(...data) {
      print("log", format(data));
    },
    warn(...data) {
      print("warn", format(data));
    },
    assert(condition = false, ...data) {
      if (condition) return;
      const isTemplate = data.length > 0 && typeof data[0] === "string";
      if (isTemplate) data[0] = `Assertion failed: ${data[0]}`;
      print("error", isTemplate ? format(data) : follow("Assertion failed", data));
    },
    clear() {
      groups = 0;
    },
    dir(item = undefined, options = undefined) {
      print("log", inspectArgument(native, settings, item));
    },
    dirxml(...data) {
      print("log", format(data));
    },
    table(tabularData = undefined, properties = undefined) {
      const columns = properties === undefined ? undefined : columnNames(properties);
      print("log", table(tabularData, columns) ?? format([tabularData]));
    },
    trace(...data) {
      print("log", (data.length === 0 ? "Trace" : `Trace: ${format(data)}`) + frames(methods.trace));
    },
    count(label = "default") {
      label = toDOMString(label);
      const count = (mapGet(counts, label) ?? 0) + 1;
      mapSet(counts, label, count);
      print("info", `${label}: ${count}`);
    },
    countReset(label = "default") {
      label = toDOMString(label);
      if (!mapDelete(counts, label)) print("warn", `Count for '${label}' does not exist`);
    },
    group(...data) {
      openGroup(data);
    },
    groupCollapsed(...data) {
      openGroup(data);
    },
    groupEnd() {
      if (groups > 0) groups--;
    },
    time(label = "default") {
      label = toDOMString(label);
      if (mapGet(timers, label) !== undefined) print("warn", `Timer '${label}' already exists`);
      else mapSet(timers, label, dateNow());
    },
    timeLog(label = "default", ...data) {
      const text = elapsed(toDOMString(label));
      if (text !== undefined) print("log", follow(text, data));
    },
    timeEnd(label = "default") {
      label = toDOMString(label);
      const text = elapsed(label);
      mapDelete(timers, label);
      if (text !== undefined) print("info", text);
    },
  };

  defineNamespace("console", makeNamespace(methods));
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

// sequence<DOMString> as far as an array carries it; anything else means every column.
function columnNames(properties) {
  if (typeof properties !== "object" || properties === null) return undefined;
  const names = list();
  for (let i = 0; i < properties.length; i++) push(names, toDOMString(properties[i]));
  return names;
}

// The frames of the guest below the console method, with the line break before them.
function frames(above) {
  const holder = { __proto__: null };
  captureStackTrace(holder, above);
  const stack = ownData(holder, "stack") ?? holder.stack;
  const at = stringIndexOf(stack, "\n");
  return at < 0 ? "" : stringSlice(stack, at);
}

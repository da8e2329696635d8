// What the console does beyond lines of plain text (WHATWG Console, https://console.spec.whatwg.org/): formatting,
// groups, counts, timers, tables and traces; and inspect, by which values are shown anywhere. See ../../console.js.

import {
  captureStackTrace,
  dateNow,
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
} from "../../primordials.js";
import { ownData } from "../../reflect.js";
import { toDOMString } from "../../webidl.js";
import { makeFormat } from "./format.js";
import { inspectArgument } from "./inspect.js";
import { indentRest } from "./layout.js";
import { makeTable } from "./table.js";

const maxGroupIndent = 20; // levels; deeper groups are not indented further

export default function makePart({ native, nameOf, loaded }) {
  const settings = { __proto__: null, nameOf, loaded };
  return {
    __proto__: null,
    inspect: (value) => inspectArgument(native, settings, value),
    makeConsole: () => makeConsole(native, settings),
  };
}

function makeConsole(native, settings) {
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

  return {
    __proto__: null,
    write: (level, data) => print(level, format(data)),
    fail(data) {
      const isTemplate = data.length > 0 && typeof data[0] === "string";
      if (isTemplate) data[0] = `Assertion failed: ${data[0]}`;
      print("error", isTemplate ? format(data) : follow("Assertion failed", data));
    },
    clear() {
      groups = 0;
    },
    dir: (item) => print("log", inspectArgument(native, settings, item)),
    table(data, properties) {
      const columns = properties === undefined ? undefined : columnNames(properties);
      print("log", table(data, columns) ?? format([data]));
    },
    trace: (data, above) => print("log", (data.length === 0 ? "Trace" : `Trace: ${format(data)}`) + frames(above)),
    count(label) {
      label = toDOMString(label);
      const count = (mapGet(counts, label) ?? 0) + 1;
      mapSet(counts, label, count);
      print("info", `${label}: ${count}`);
    },
    countReset(label) {
      label = toDOMString(label);
      if (!mapDelete(counts, label)) print("warn", `Count for '${label}' does not exist`);
    },
    group(data) {
      if (data.length > 0) print("log", format(data));
      groups++;
    },
    groupEnd() {
      if (groups > 0) groups--;
    },
    time(label) {
      label = toDOMString(label);
      if (mapGet(timers, label) !== undefined) print("warn", `Timer '${label}' already exists`);
      else mapSet(timers, label, dateNow());
    },
    timeLog(label, data) {
      const text = elapsed(toDOMString(label));
      if (text !== undefined) print("log", follow(text, data));
    },
    timeEnd(label) {
      label = toDOMString(label);
      const text = elapsed(label);
      mapDelete(timers, label);
      if (text !== undefined) print("info", text);
    },
  };
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
  if (typeof stack !== "string") return ""; // the program's Error.stackTraceLimit is not a number
  const at = stringIndexOf(stack, "\n");
  return at < 0 ? "" : stringSlice(stack, at);
}

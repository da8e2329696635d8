// One entry for each internal class of object: how the console shows it. Internal slots are read by the engine's own
// methods taken in primordials.js, so that nothing of the guest runs.

import { showError } from "./inspect-error.js";
import { showDataView, showArrayBuffer, showTypedArray, typedArrays } from "./inspect-binary.js";
import { showArguments, showArray, showIterator, showMap, showSet } from "./inspect-lists.js";
import { trimHead } from "./inspect-head.js";
import { showPlatform } from "./inspect-platform.js";
import {
  bigintValue,
  booleanValue,
  dateToISOString,
  dateValue,
  getPrototypeOf,
  isNaN,
  list,
  numberValue,
  push,
  regexpFlags,
  regexpSource,
  stringValue,
  symbolValue,
  weakRefDeref,
} from "../../primordials.js";
import { className, functionName } from "../../reflect.js";

function showObject(inspector, value, at) {
  const platform = showPlatform(inspector, value, at);
  if (platform !== undefined) return platform;
  const head = inspector.head(value, "Object", undefined, "Object");
  if (inspector.isTooDeep(at)) return `[${trimHead(head, "Object")}]`;
  const parts = list();
  inspector.properties(parts, value, at, false);
  return inspector.wrap(head, "{", parts, "}", at);
}

// A module namespace has no prototype by design.
function showNamespace(inspector, value, at) {
  if (inspector.isTooDeep(at)) return "[Module]";
  const parts = list();
  inspector.properties(parts, value, at, false);
  return inspector.wrap("[Module] ", "{", parts, "}", at);
}

/** Shows base, and braces after it only when value has properties of its own. */
function withProperties(inspector, value, at, base) {
  const parts = list();
  if (!inspector.isTooDeep(at)) inspector.properties(parts, value, at, at.kind === "BoxedString");
  return parts.length === 0 ? base : inspector.wrap(`${base} `, "{", parts, "}", at);
}

function showFunction(inspector, value, at) {
  const name = functionName(value);
  const label = name === "" ? `${at.kind} (anonymous)` : `${at.kind}: ${name}`;
  return withProperties(inspector, value, at, `[${label}]`);
}

function showClass(inspector, value, at) {
  let label = `class ${functionName(value) || "(anonymous)"}`;
  const parent = getPrototypeOf(value);
  if (typeof parent === "function" && inspector.native.classOf(parent) !== "Proxy") {
    const name = functionName(parent);
    if (name !== "") label += ` extends ${name}`;
  }
  return withProperties(inspector, value, at, `[${label}]`);
}

function showDate(inspector, value, at) {
  return withProperties(inspector, value, at, isNaN(dateValue(value)) ? "Invalid Date" : dateToISOString(value));
}

function showRegExp(inspector, value, at) {
  return withProperties(inspector, value, at, `/${regexpSource(value)}/${regexpFlags(value)}`);
}

const showBoxed = (name, unbox) => (inspector, value, at) =>
  withProperties(inspector, value, at, `[${name}: ${inspector.primitive(unbox(value))}]`);

function showPromise(inspector, value, at) {
  const head = inspector.head(value, "Promise");
  if (inspector.isTooDeep(at)) return `[${trimHead(head, "Promise")}]`;
  const result = inspector.native.promiseState(value);
  const parts = list();
  if (result[0] === "pending") {
    push(parts, "<pending>");
  } else {
    const text = inspector.show(result[1], at.level + 1, at.indent + 2);
    push(parts, result[0] === "rejected" ? `<rejected> ${text}` : text);
  }
  inspector.properties(parts, value, at, false);
  return inspector.wrap(head, "{", parts, "}", at);
}

function showWeakRef(inspector, value, at) {
  if (inspector.isTooDeep(at)) return "[WeakRef]";
  const parts = list();
  push(parts, inspector.show(weakRefDeref(value), at.level + 1, at.indent + 2));
  inspector.properties(parts, value, at, false);
  return inspector.wrap(inspector.head(value, "WeakRef"), "{", parts, "}", at);
}

const showOpaque = (name) => (inspector, value, at) => {
  const parts = list();
  push(parts, "<items unknown>");
  return inspector.wrap(inspector.head(value, name), "{", parts, "}", at);
};

// The target is shown, the handler is not asked.
function showProxy(inspector, value, at) {
  const pair = inspector.native.proxyTarget(value);
  if (pair[0] === null || pair[0] === undefined) return "<Revoked Proxy>";
  if (inspector.isTooDeep(at)) return "[Proxy]";
  const text = inspector.show(pair[0], at.level + 1, at.indent);
  const kind = inspector.native.classOf(pair[0]);
  const name = kind === "Object" ? (className(inspector.native, pair[0]) ?? "Object") : kind;
  return `Proxy(${name}) ${text}`;
}

/** Maps what native.classOf says to its show function: (inspector, value, {kind, level, indent}) → text. */
export const kinds = {
  __proto__: null,
  Object: showObject,
  Generator: showObject,
  Namespace: showNamespace,
  Function: showFunction,
  AsyncFunction: showFunction,
  GeneratorFunction: showFunction,
  AsyncGeneratorFunction: showFunction,
  Class: showClass,
  Array: showArray,
  Arguments: showArguments,
  Date: showDate,
  RegExp: showRegExp,
  Error: showError,
  Map: showMap,
  Set: showSet,
  MapIterator: showIterator,
  SetIterator: showIterator,
  WeakMap: showOpaque("WeakMap"),
  WeakSet: showOpaque("WeakSet"),
  WeakRef: showWeakRef,
  Promise: showPromise,
  Proxy: showProxy,
  ArrayBuffer: showArrayBuffer,
  SharedArrayBuffer: showArrayBuffer,
  DataView: showDataView,
  BoxedBoolean: showBoxed("Boolean", booleanValue),
  BoxedNumber: showBoxed("Number", numberValue),
  BoxedString: showBoxed("String", stringValue),
  BoxedSymbol: showBoxed("Symbol", symbolValue),
  BoxedBigInt: showBoxed("BigInt", bigintValue),
};
for (let i = 0; i < typedArrays.length; i++) kinds[typedArrays[i]] = showTypedArray;

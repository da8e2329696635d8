// Errors on the console: the stack at the top and for causes, `[Name: message]` inside other objects.

import { list, push, stringIncludes, stringIndexOf, stringSlice, stringStartsWith } from "../../primordials.js";
import { className, inheritedData, ownData, stackOf } from "../../reflect.js";

// Own properties that the text shows already, or that follow in brackets.
const covered = { __proto__: null, stack: true, message: true, name: true, cause: true, errors: true };

export function showError(inspector, error, at) {
  const inFull = at.level === 0 || inspector.errorInFull;
  inspector.errorInFull = false;
  const base = inFull ? fullText(inspector, error) : `[${headerOf(inspector, error)}]`;
  if (inspector.isTooDeep(at)) return base;
  const parts = list();
  inspector.properties(parts, error, at, false, covered);
  addHidden(inspector, parts, error, at, "cause");
  addHidden(inspector, parts, error, at, "errors");
  return parts.length === 0 ? base : inspector.wrap(`${base} `, "{", parts, "}", at);
}

function nameOf(inspector, error) {
  const name = inheritedData(inspector.native, error, "name");
  if (typeof name === "string" && name !== "" && name !== "Error") return name;
  return className(inspector.native, error) || "Error";
}

function headerOf(inspector, error) {
  const name = nameOf(inspector, error);
  const message = inheritedData(inspector.native, error, "message");
  return typeof message === "string" && message !== "" ? `${name}: ${message}` : name;
}

// The engine writes the first line when the error is made: a class or a name given later are not in it yet.
function fullText(inspector, error) {
  const stack = stackOf(error);
  if (stack === undefined || stack === "") return headerOf(inspector, error);
  const name = nameOf(inspector, error);
  const lineEnd = stringIndexOf(stack, "\n");
  const first = lineEnd < 0 ? stack : stringSlice(stack, 0, lineEnd);
  if (!stringStartsWith(stack, "Error") || stringIncludes(first, name)) return stack;
  return name + stringSlice(stack, "Error".length);
}

// `cause` and the `errors` of an AggregateError are not enumerable; people look for them all the same.
function addHidden(inspector, parts, error, at, key) {
  const value = ownData(error, key);
  if (value === undefined) return;
  inspector.errorInFull = inspector.isObject(value) && inspector.native.classOf(value) === "Error";
  push(parts, `[${key}]: ${inspector.show(value, at.level + 1, at.indent + 2)}`);
}

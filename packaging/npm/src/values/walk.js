// What both directions have in common: a walk through a value, or through the tree that is its encoding. Either is deep:
// what is called at each level has few variables.

import { ValueError } from "./classes.js";

export const { keys: keysOf, entries: entriesOf, fromEntries, hasOwn } = Object;

// Bounds of one value, those of every implementation of the protocol.
const maxDepth = 2000;
const maxParts = 1 << 20;

/**
 * Starts a walk: [at, fail, enter, leave]. visit(part, place) is called for each part. at(part, step) visits what is a step
 * further than where the walk is; at(part, step, inner) goes two, and at(root) none. fail(reason) throws a ValueError with the
 * place. Between enter(step) and leave() the walk is a step further.
 */
export function walk(visit) {
  let place; // {step, from}, where from is a place, undefined for the root
  let depth = -1;
  let parts = 0;

  function enter(step) {
    place = { step, from: place };
    depth++;
  }

  function leave() {
    place = place.from;
    depth--;
  }

  function at(part, step, inner) {
    enter(step);
    if (inner === undefined && ++parts > maxParts) fail(`it has more than ${maxParts} parts`);
    if (depth >= maxDepth && part !== null && typeof part === "object") fail(`it is nested deeper than ${maxDepth}`);
    const result = inner === undefined ? visit(part, place) : at(part, inner);
    leave();
    return result;
  }

  function fail(reason) {
    throw new ValueError(pathOf(place), reason);
  }

  return [at, fail, enter, leave];
}

/** The JSON Pointer of a place. */
export function pathOf(place) {
  let path = "";
  for (let last = place; last.from !== undefined; last = last.from) path = "/" + String(last.step).replaceAll("~", "~0").replaceAll("/", "~1") + path;
  return path;
}

/** Whether an object with these keys is a tag, or looks like one. */
export const areTag = (keys) => keys.length === 1 && keys[0][0] === "@";

/** Puts into an object the members of another one, as at has them, and returns it. */
export function members(into, from, at, keys = keysOf(from)) {
  for (let i = 0; i < keys.length; i++) put(into, keys[i], at(from[keys[i]], keys[i]));
  return into;
}

/** Sets a data property, whatever the key: "__proto__" too. */
export function put(object, key, value) {
  if (key === "__proto__") define(object, key, value, true);
  else if (key !== "then" || typeof value !== "function") object[key] = value; // an object with it would be called when awaited
}

export function define(object, key, value, enumerable = false) {
  Object.defineProperty(object, key, { value, enumerable, writable: true, configurable: true });
}

// Arrays, Maps, Sets and their iterators on the console: at most 100 items each.

import { trimHead } from "./inspect-head.js";
import {
  getOwnPropertyDescriptor,
  list,
  mapEntries,
  mapIteratorNext,
  mapSize,
  push,
  setIteratorNext,
  setSize,
  setValues,
} from "../../primordials.js";
import { ownData } from "../../reflect.js";

const maxItems = 100;
const maxScan = 10_000; // positions looked at in an array with holes
const maxNamedScan = 10_000; // length up to which an array is searched for properties beside its items

/** Adds the note on items that are not shown. */
export function noteLeftOut(parts, count, noun = "item") {
  if (count > 0) push(parts, `... ${count} more ${noun}${count === 1 ? "" : "s"}`);
}

/** Adds the properties of an array-like object that are not items. */
export function namedProperties(inspector, parts, value, at, length) {
  if (length <= maxNamedScan) inspector.properties(parts, value, at, true);
}

export function showArray(inspector, value, at) {
  const length = ownData(value, "length");
  const head = inspector.head(value, "Array", length, "Array");
  return showItems(inspector, value, at, head, "Array", length);
}

export function showArguments(inspector, value, at) {
  const length = ownData(value, "length");
  return showItems(inspector, value, at, "[Arguments] ", "Arguments", typeof length === "number" ? length : 0);
}

function showItems(inspector, value, at, head, name, length) {
  if (inspector.isTooDeep(at)) return `[${trimHead(head, name)}]`;
  const parts = list();
  let i = 0;
  while (i < length && parts.length < maxItems && i < maxScan && inspector.left > 0) {
    const holes = countHoles(value, i, length);
    if (holes > 0) {
      push(parts, `<${holes} empty item${holes === 1 ? "" : "s"}>`);
      i += holes;
    } else {
      push(parts, inspector.property(value, i++, at, ""));
    }
  }
  noteLeftOut(parts, length - i);
  namedProperties(inspector, parts, value, at, length);
  return inspector.wrap(head, "[", parts, "]", at, true);
}

function countHoles(value, from, length) {
  let i = from;
  while (i < length && i < from + maxScan && getOwnPropertyDescriptor(value, i) === undefined) i++;
  return i - from;
}

export function showMap(inspector, value, at) {
  const size = mapSize(value);
  const head = inspector.head(value, "Map", size);
  if (inspector.isTooDeep(at)) return `[${trimHead(head, "Map")}]`;
  const parts = list();
  const iterator = mapEntries(value);
  for (let i = 0; i < size && i < maxItems && inspector.left > 0; i++) {
    const pair = mapIteratorNext(iterator).value;
    push(parts, showPair(inspector, pair[0], pair[1], at));
  }
  noteLeftOut(parts, size - parts.length);
  inspector.properties(parts, value, at, false);
  return inspector.wrap(head, "{", parts, "}", at);
}

function showPair(inspector, key, value, at) {
  const left = inspector.show(key, at.level + 1, at.indent + 2);
  return `${left} => ${inspector.show(value, at.level + 1, at.indent + 2)}`;
}

export function showSet(inspector, value, at) {
  const size = setSize(value);
  const head = inspector.head(value, "Set", size);
  if (inspector.isTooDeep(at)) return `[${trimHead(head, "Set")}]`;
  const parts = list();
  const iterator = setValues(value);
  for (let i = 0; i < size && i < maxItems && inspector.left > 0; i++) {
    push(parts, inspector.show(setIteratorNext(iterator).value, at.level + 1, at.indent + 2));
  }
  noteLeftOut(parts, size - parts.length);
  inspector.properties(parts, value, at, false);
  return inspector.wrap(head, "{", parts, "}", at, true);
}

// The engine previews what the iterator has still to give; it does not advance.
export function showIterator(inspector, value, at) {
  const head = at.kind === "MapIterator" ? "[Map Iterator] " : "[Set Iterator] ";
  if (inspector.isTooDeep(at)) return `[${at.kind}]`;
  const preview = inspector.native.entries(value);
  const items = preview[0];
  const step = preview[1] ? 2 : 1;
  const parts = list();
  let i = 0;
  for (; i < items.length && parts.length < maxItems && inspector.left > 0; i += step) {
    push(parts, step === 2
      ? showPair(inspector, items[i], items[i + 1], at)
      : inspector.show(items[i], at.level + 1, at.indent + 2));
  }
  noteLeftOut(parts, (items.length - i) / step);
  inspector.properties(parts, value, at, false);
  return inspector.wrap(head, "{", parts, "}", at);
}

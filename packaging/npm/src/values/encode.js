// From JavaScript values to the JSON text of the protocol's value codec. Every property is read once.

import { toBase64 } from "./base64.js";
import { held } from "./classes.js";
import { stringify } from "./json.js";
import { bounded, classes, errorBody, isArray, viewTag } from "./tags.js";
import { areTag, keysOf, members, pathOf, walk } from "./walk.js";

/**
 * Resolves to the text of a value. It is captured before the first await; only the bodies of Blobs, Requests and Responses
 * are read later. Rejects with a ValueError that says where the value has what cannot cross: functions, symbols, promises,
 * weak collections.
 */
export async function encode(value) {
  return stringify(await encodeTree(value));
}

const classOf = (object) => Object.prototype.toString.call(object).slice(8, -1);

/** Classes that say nothing outside of their realm. */
const nowhere = /^(Symbol|Promise|Weak(Map|Set|Ref)|SharedArrayBuffer)$/;

/** encode without the last step: a tree that JSON.stringify takes. */
export function encodeTree(root) {
  const places = new Map(); // by object
  const pending = [];
  const [at, fail, enter, leave] = walk(visit);
  const tree = at(root);
  return pending.length > 0 ? Promise.all(pending).then(() => tree) : tree;

  function visit(value, place) {
    switch (typeof value) {
      case "boolean":
        return value;
      case "string":
        return value.isWellFormed() ? value : { "@utf16": toBase64(utf16(value)) };
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0) ? value : { "@number": value === 0 ? "-0" : String(value) };
      case "undefined":
        return { "@undefined": true };
      case "bigint":
        return bounded(value) === false ? refuse("BigInt of more than 65536 bits") : { "@bigint": String(value) };
    }
    if (value === null) return null;
    if (held.has(value)) return { "@handle": held.get(value).tag };
    if (typeof value !== "object") refuse(typeof value);
    if (places.has(value)) return { "@ref": pathOf(places.get(value)) };
    places.set(value, place);
    if (isArray(value)) return array(value);
    const prototype = Object.getPrototypeOf(value);
    return (prototype !== Object.prototype && prototype !== null && instance(value)) || plain(value);
  }

  function refuse(what) {
    fail(`a ${what} cannot cross`);
  }

  function tagged(name, write, object, own) {
    enter(name);
    const body = write(object, at, own, later);
    leave();
    return { [name]: body };
  }

  function plain(object) {
    const keys = keysOf(object);
    return areTag(keys) ? tagged("@object", membersOf, object) : membersOf(object, at, keys);
  }

  // What is of no class that crosses is a plain object.
  function instance(object) {
    const kind = classOf(object);
    if (nowhere.test(kind)) refuse(kind);
    const [name, member, write] = classes[kind] ?? [];
    const own = member ? ownOf(kind, member, object) : name;
    if (own !== undefined) return tagged(name, write, object, own);
    if (ArrayBuffer.isView(object)) return viewTag(object);
    return isError(object) && tagged("@error", errorBody, object);
  }

  // The tree of bytes that have to be read first.
  function later(source) {
    if (source.bodyUsed) fail("its body was read already");
    const bytes = { "@bytes": "" };
    const reading = source.arrayBuffer().then((buffer) => (bytes["@bytes"] = toBase64(buffer)));
    pending.push(reading);
    reading.catch(() => {}); // nobody may come to wait for it, where the rest of the value cannot cross
    return bytes;
  }

  function array(list) {
    const items = [];
    while (items.length < list.length && items.length in list) items.push(at(list[items.length], items.length));
    if (items.length < list.length) sparse(list, items);
    return items;
  }

  // A sparse array may be huge and have few keys: from its first hole on it is asked for them.
  function sparse(list, items) {
    let next = items.length;
    for (const key of [...keysOf(list), `${list.length}`]) {
      const index = key >>> 0;
      if (String(index) !== key || index < next || index > list.length) continue;
      if (index > next) items.push({ "@hole": index - next });
      if (index < list.length) items.push(at(list[index], items.length));
      next = index + 1;
    }
  }
}

const membersOf = (object, at, keys) => members({}, object, at, keys);

// The member of a class that an object of it has, or what it gives; undefined for another object.
function ownOf(kind, member, object) {
  try {
    const own = Reflect.get(globalThis[kind].prototype, member, object);
    return typeof own === "function" ? own.call(object) : own;
  } catch {} // it is of another class
}

/** Tells whether object is an Error, of whatever realm. */
export const isError = (object) => Error.isError?.(object) ?? (object instanceof Error || classOf(object) === "Error");

const utf16 = (string) => new Uint16Array(string.length).map((_, i) => string.charCodeAt(i));

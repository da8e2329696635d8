// From JavaScript values to the JSON text of the protocol's value codec; ipc/protocol/codec.go says what stands for what.
// Every property is read once.

import { toBase64 } from "./base64.js";
import { bufferKinds, maxBigIntDigits, maxDepth, maxParts, pointerStep, put, ValueError } from "./classes.js";

/**
 * Resolves to the text of a value. It is captured before the first await; only the bodies of Blobs, Requests and Responses
 * are read later. Rejects with a ValueError that says where the value has what cannot cross: functions, symbols, promises,
 * weak collections.
 */
export async function encode(value) {
  return JSON.stringify(await encodeTree(value));
}

/** encode without the last step: a tree that JSON.stringify takes. */
export function encodeTree(value) {
  const walk = new Encoder();
  const tree = walk.value(value, "", 0);
  return walk.pending.length === 0 ? tree : Promise.all(walk.pending).then(() => tree);
}

const tagOf = (object) => Object.prototype.toString.call(object).slice(8, -1);

class Encoder {
  pending = [];
  #seen = new Map();
  #parts = 0;

  value(value, path, depth) {
    if (++this.#parts > maxParts) throw new ValueError(path, `it has more than ${maxParts} parts`);
    switch (typeof value) {
      case "string":
        return value.isWellFormed() ? value : tag("@utf16", toBase64(utf16(value)));
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0) ? value : tag("@number", Object.is(value, -0) ? "-0" : String(value));
      case "boolean":
        return value;
      case "undefined":
        return tag("@undefined", true);
      case "bigint":
        return tag("@bigint", bigint(value, path));
      case "object":
        return value === null ? null : this.#object(value, path, depth + 1);
    }
    throw new ValueError(path, `a ${typeof value} cannot cross`);
  }

  #object(object, path, depth) {
    if (depth > maxDepth) throw new ValueError(path, `it is nested deeper than ${maxDepth}`);
    const before = this.#seen.get(object);
    if (before !== undefined) return tag("@ref", before);
    this.#seen.set(object, path);
    if (Array.isArray(object)) return this.#array(object, path, depth);
    const prototype = Object.getPrototypeOf(object);
    if (prototype === Object.prototype || prototype === null) return this.#plain(object, path, depth);
    const write = classes[tagOf(object)];
    if (write !== undefined) {
      const written = write.call(this, object, path, depth);
      if (written !== undefined) return written;
    }
    const body = ArrayBuffer.isView(object) ? view(object) : this.#error(object, path, depth);
    return body ?? this.#plain(object, path, depth);
  }

  #array(array, path, depth) {
    const items = [];
    for (let i = 0; i < array.length; i++) {
      if (i in array) {
        items.push(this.value(array[i], `${path}/${items.length}`, depth));
        continue;
      }
      const end = holesEnd(array, i);
      items.push(tag("@hole", end - i));
      i = end - 1;
    }
    return items;
  }

  #plain(object, path, depth) {
    const keys = Object.keys(object);
    if (keys.length !== 1 || keys[0][0] !== "@") return this.#members(object, keys, path, depth);
    return tag("@object", this.#members(object, keys, `${path}/@object`, depth + 1));
  }

  #members(object, keys, path, depth, members = { __proto__: null }) {
    for (const key of keys) put(members, key, this.value(object[key], path + pointerStep(key), depth));
    return members;
  }

  #error(error, path, depth) {
    if (!isError(error)) return undefined;
    const members = { __proto__: null };
    const own = Object.keys(error).filter((key) => !errorTexts.includes(key) && !errorValues.includes(key));
    for (const key of ["name", "message"]) members[key] = text(error[key]);
    const stack = Object.hasOwn(error, "stack") ? text(error.stack) : "";
    if (stack !== "" && !hostFrame.test(stack)) members.stack = stack;
    const values = errorValues.filter((key) => Object.hasOwn(error, key));
    return tag("@error", this.#members(error, [...values, ...own], `${path}/@error`, depth + 1, members));
  }

  pairs(map, path, depth) {
    return Array.from(map, ([key, value], i) => [
      this.value(key, `${path}/@map/${i}/0`, depth + 2),
      this.value(value, `${path}/@map/${i}/1`, depth + 2),
    ]);
  }

  entries(form, path, depth) {
    return Array.from(form, ([name, value], i) => [name, this.value(value, `${path}/@formdata/${i}/1`, depth + 2)]);
  }

  /** Fills member of body with the bytes of source when they have been read. */
  later(body, member, source) {
    this.pending.push(source.arrayBuffer().then((buffer) => (body[member] = tag("@bytes", toBase64(new Uint8Array(buffer))))));
    return body;
  }
}

const errorTexts = ["name", "message", "stack"];
const errorValues = ["cause", "errors"];
/** A line of a stack that names a place in the host's files, which are nobody's business. */
const hostFrame = /(^\s*at |@).*:\d+:\d+\)?$/m;

function tag(name, body) {
  return { __proto__: null, [name]: body };
}

// refused has a class named that says nothing outside of its realm.
function refused(kind) {
  return (_, path) => {
    throw new ValueError(path, `a ${kind} cannot cross`);
  };
}

// is runs a method that only an object of its class takes: a class string alone can be a lie.
function is(method, object) {
  try {
    method.call(object);
    return true;
  } catch {
    return false;
  }
}

const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name)?.get;
const mapSize = getter(Map.prototype, "size");
const setSize = getter(Set.prototype, "size");
const bufferLength = getter(ArrayBuffer.prototype, "byteLength");

function boxed(method) {
  return function (object, path, depth) {
    return is(method, object) ? tag("@boxed", [this.value(method.call(object), `${path}/@boxed/0`, depth + 1)]) : undefined;
  };
}

// classes are by class string. Each gives a tree, or undefined when the object is not of that class after all.
const classes = {
  Date: (date) => {
    if (!is(Date.prototype.getTime, date)) return undefined;
    const ms = Date.prototype.getTime.call(date);
    return tag("@date", Number.isNaN(ms) ? null : ms);
  },
  RegExp: (regexp) => (regexp instanceof RegExp ? tag("@regexp", [regexp.source, regexp.flags]) : undefined),
  URL: (url) => (url instanceof URL ? tag("@url", url.href) : undefined),
  Map(map, path, depth) {
    return is(mapSize, map) ? tag("@map", this.pairs(map, path, depth)) : undefined;
  },
  Set(set, path, depth) {
    if (!is(setSize, set)) return undefined;
    return tag("@set", Array.from(set, (item, i) => this.value(item, `${path}/@set/${i}`, depth + 1)));
  },
  ArrayBuffer: (buffer, path) => {
    if (!is(bufferLength, buffer)) return undefined;
    if (buffer.detached) throw new ValueError(path, "a detached ArrayBuffer cannot cross");
    return tag("@buffer", ["ArrayBuffer", toBase64(new Uint8Array(buffer))]);
  },
  Boolean: boxed(Boolean.prototype.valueOf),
  Number: boxed(Number.prototype.valueOf),
  String: boxed(String.prototype.valueOf),
  BigInt: boxed(BigInt.prototype.valueOf),
  Symbol: refused("symbol"),
  Promise: refused("promise"),
  WeakMap: refused("WeakMap"),
  WeakSet: refused("WeakSet"),
  WeakRef: refused("WeakRef"),
  SharedArrayBuffer: refused("SharedArrayBuffer"),
  Blob(blob) {
    return tag("@blob", this.later({ type: blob.type, data: null }, "data", blob));
  },
  File(file) {
    return tag("@file", this.later({ name: file.name, type: file.type, lastModified: file.lastModified, data: null }, "data", file));
  },
  Headers: (headers) => tag("@headers", [...headers]),
  FormData(form, path, depth) {
    return tag("@formdata", this.entries(form, path, depth));
  },
  Request(request, path) {
    const { method, url, headers } = request;
    const body = { method, url, headers: [...headers], body: null };
    for (const [name, usual] of requestOptions) if (request[name] !== undefined && request[name] !== usual) body[name] = request[name];
    if (body.referrer !== undefined) {
      if (request.referrer === "") body.referrer = "no-referrer";
      else delete body.referrer; // a page's address does not leave it
    }
    return tag("@request", this.body(body, request, path));
  },
  Response(response, path) {
    const { status, statusText, url, headers } = response;
    const body = { status, statusText, url, headers: [...headers], body: null };
    if (response.type === "error") body.type = "error";
    if (response.redirected) body.redirected = true;
    return tag("@response", this.body(body, response, path));
  },
};

/** The members of a Request that cross where they are not what a Request has unless told otherwise. */
const requestOptions = [
  ["mode", "cors"], ["credentials", "same-origin"], ["cache", "default"], ["redirect", "follow"],
  ["referrer", "about:client"], ["referrerPolicy", ""], ["integrity", ""], ["keepalive", false],
];

Encoder.prototype.body = function (body, message, path) {
  if (message.bodyUsed) throw new ValueError(path, "its body was read already");
  return message.body === null || message.body === undefined ? body : this.later(body, "body", message);
};

function view(object) {
  const bytes = new Uint8Array(object.buffer, object.byteOffset, object.byteLength);
  const kind = kindOf(object);
  return kind === "Uint8Array" ? tag("@bytes", toBase64(bytes)) : tag("@buffer", [kind, toBase64(bytes)]);
}

// kindOf is the class of a view, whatever its subclass: typed arrays have it as their class string.
const typedArrayTag = getter(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);
function kindOf(object) {
  const kind = typedArrayTag.call(object) ?? "DataView";
  return Object.hasOwn(bufferKinds, kind) ? kind : "Uint8Array";
}

/** Tells whether object is an Error, of whatever realm. */
export const isError = (object) => (Error.isError ? Error.isError(object) : object instanceof Error || tagOf(object) === "Error");

function text(value) {
  try {
    return typeof value === "symbol" ? "" : String(value);
  } catch {
    return "";
  }
}

function bigint(value, path) {
  const digits = value.toString();
  if (digits.length - (value < 0n ? 1 : 0) > maxBigIntDigits || BigInt.asUintN(65536, value < 0n ? -value : value) !== (value < 0n ? -value : value)) {
    throw new ValueError(path, "a BigInt of more than 65536 bits cannot cross");
  }
  return digits;
}

function utf16(string) {
  const bytes = new Uint8Array(2 * string.length);
  for (let i = 0; i < string.length; i++) {
    const unit = string.charCodeAt(i);
    bytes[2 * i] = unit & 0xff;
    bytes[2 * i + 1] = unit >> 8;
  }
  return bytes;
}

// holesEnd finds the end of a run of holes. A sparse array may be huge and have few keys: it is asked for them once.
function holesEnd(array, from) {
  let i = from + 1;
  for (; i < array.length && i < from + 64; i++) if (i in array) return i;
  if (i >= array.length) return array.length;
  let next = array.length;
  for (const key of Object.keys(array)) {
    const index = Number(key);
    if (String(index >>> 0) === key && index >= i && index < next) next = index;
  }
  return next;
}

// From JavaScript values to the JSON text of the protocol's value codec; ipc/protocol/codec.go says what stands for what.
// Every property is read once.

import { toBase64 } from "./base64.js";
import { errorTexts, errorValues, fits, handleTags, isBufferKind, maxDepth, maxParts, pointerStep, put, ValueError } from "./classes.js";

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
        return Number.isFinite(value) && !Object.is(value, -0) ? value : tag("@number", value === 0 ? "-0" : String(value));
      case "boolean":
        return value;
      case "undefined":
        return tag("@undefined", true);
      case "bigint":
        if (!fits(value)) throw new ValueError(path, "a BigInt of more than 65536 bits cannot cross");
        return tag("@bigint", String(value));
      case "function":
        if (handleTags.has(value)) return tag("@handle", handleTags.get(value));
        break;
      case "object":
        return value === null ? null : this.#object(value, path, depth + 1);
    }
    throw uncrossable(path, typeof value);
  }

  #object(object, path, depth) {
    if (depth > maxDepth) throw new ValueError(path, `it is nested deeper than ${maxDepth}`);
    const before = this.#seen.get(object);
    if (before !== undefined) return tag("@ref", before);
    if (handleTags.has(object)) return tag("@handle", handleTags.get(object));
    this.#seen.set(object, path);
    if (Array.isArray(object)) return this.#array(object, path, depth);
    const prototype = Object.getPrototypeOf(object);
    return prototype === Object.prototype || prototype === null ? this.#plain(object, path, depth) : this.#instance(object, path, depth);
  }

  #instance(object, path, depth) {
    const kind = tagOf(object);
    if (nowhere.test(kind)) throw uncrossable(path, kind);
    const [brand, write] = Object.hasOwn(classes, kind) ? classes[kind] : [];
    if (write !== undefined && is(brand, object)) return write(object, this, path, depth);
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

  /** Fills member of body with the bytes of source when they have been read. */
  later(body, member, source) {
    const reading = source.arrayBuffer().then((buffer) => (body[member] = tag("@bytes", toBase64(new Uint8Array(buffer)))));
    this.pending.push(reading);
    reading.catch(() => {}); // nobody may come to wait for it, where the rest of the value cannot cross
    return body;
  }

  /** What a Request and a Response have both. */
  message(message, path, body) {
    if (message.bodyUsed) throw new ValueError(path, "its body was read already");
    Object.assign(body, { url: message.url, headers: [...message.headers], body: null });
    return message.body ? this.later(body, "body", message) : body;
  }
}

/** A line of a stack that names a place in the host's files, which are nobody's business. */
const hostFrame = /(^\s*at |@).*:\d+:\d+\)?$/m;

function tag(name, body) {
  return { __proto__: null, [name]: body };
}

const uncrossable = (path, what) => new ValueError(path, `a ${what} cannot cross`);

/** Classes that say nothing outside of their realm. */
const nowhere = /^(Symbol|Promise|Weak(Map|Set|Ref)|SharedArrayBuffer)$/;

// is runs a method that only an object of its class takes: a class string alone can be a lie.
function is(method, object) {
  try {
    method?.call(object);
    return true;
  } catch {
    return false;
  }
}

const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name)?.get;

function boxed({ prototype: { valueOf } }) {
  return [valueOf, (object, encoder, path, depth) => tag("@boxed", [encoder.value(valueOf.call(object), `${path}/@boxed/0`, depth + 1)])];
}

const { getTime } = Date.prototype;

// By class string, a method that tells whether an object is of that class, and what writes it.
const classes = {
  Date: [getTime, (date) => tag("@date", Number.isNaN(getTime.call(date)) ? null : getTime.call(date))],
  RegExp: [getter(RegExp.prototype, "source"), ({ source, flags }) => tag("@regexp", [source, flags])],
  URL: [getter(URL.prototype, "href"), ({ href }) => tag("@url", href)],
  Map: [getter(Map.prototype, "size"), (map, encoder, path, depth) => tag("@map", Array.from(map, ([key, value], i) => [
    encoder.value(key, `${path}/@map/${i}/0`, depth + 2),
    encoder.value(value, `${path}/@map/${i}/1`, depth + 2),
  ]))],
  Set: [getter(Set.prototype, "size"), (set, encoder, path, depth) => tag("@set", Array.from(set, (item, i) => encoder.value(item, `${path}/@set/${i}`, depth + 1)))],
  ArrayBuffer: [getter(ArrayBuffer.prototype, "byteLength"), (buffer, _, path) => {
    if (buffer.detached) throw new ValueError(path, "a detached ArrayBuffer cannot cross");
    return tag("@buffer", ["ArrayBuffer", toBase64(new Uint8Array(buffer))]);
  }],
  Boolean: boxed(Boolean),
  Number: boxed(Number),
  String: boxed(String),
  BigInt: boxed(BigInt),
  Blob: [undefined, (blob, encoder) => tag("@blob", encoder.later({ type: blob.type, data: null }, "data", blob))],
  File: [undefined, (file, encoder) => {
    const { name, type, lastModified } = file;
    return tag("@file", encoder.later({ name, type, lastModified, data: null }, "data", file));
  }],
  Headers: [undefined, (headers) => tag("@headers", [...headers])],
  FormData: [undefined, (form, encoder, path, depth) => tag("@formdata", Array.from(form, ([name, value], i) => [
    name,
    encoder.value(value, `${path}/@formdata/${i}/1`, depth + 2),
  ]))],
  Request: [undefined, (request, encoder, path) => {
    const body = encoder.message(request, path, { method: request.method });
    for (const [name, usual] of requestOptions) if (request[name] !== undefined && request[name] !== usual) body[name] = request[name];
    if (body.referrer === "") body.referrer = "no-referrer";
    else delete body.referrer; // a page's address does not leave it
    return tag("@request", body);
  }],
  Response: [undefined, (response, encoder, path) => {
    const { status, statusText, type, redirected } = response;
    const body = encoder.message(response, path, { status, statusText });
    if (type === "error") body.type = type;
    if (redirected) body.redirected = true;
    return tag("@response", body);
  }],
};

/** The members of a Request that cross where they are not what a Request has unless told otherwise. */
const requestOptions = Object.entries({
  mode: "cors", credentials: "same-origin", cache: "default", redirect: "follow", referrer: "about:client", referrerPolicy: "", integrity: "", keepalive: false,
});

function view(object) {
  const bytes = new Uint8Array(object.buffer, object.byteOffset, object.byteLength);
  // Typed arrays have their class, whatever the subclass, as their class string.
  const kind = typedArrayTag.call(object) ?? "DataView";
  return kind === "Uint8Array" || !isBufferKind(kind) ? tag("@bytes", toBase64(bytes)) : tag("@buffer", [kind, toBase64(bytes)]);
}

const typedArrayTag = getter(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);

/** Tells whether object is an Error, of whatever realm. */
export const isError = (object) => (Error.isError ? Error.isError(object) : object instanceof Error || tagOf(object) === "Error");

function text(value) {
  try {
    return typeof value === "symbol" ? "" : String(value);
  } catch {
    return "";
  }
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

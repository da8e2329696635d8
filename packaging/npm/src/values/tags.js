// The tags of the codec, with both directions of each: ipc/protocol/codec.go says what stands for what.

import { refuse } from "../errors.js";
import { fromBase64, stringOf, toBase64 } from "./base64.js";
import { define, hasOwn, keysOf, members, put } from "./walk.js";

export const { isArray, from } = Array;
export const isText = (value) => typeof value === "string";
const isPair = (value) => isArray(value) && value.length === 2;
const arePairs = (value) => isArray(value) && value.every(isPair);
const areTexts = (value) => isPair(value) && value.every(isText);

const isObject = (value) => value instanceof Object && !isArray(value);

/** A BigInt of at most 65536 bits without its sign, false in place of a longer one. */
export function bounded(bigint) {
  const size = bigint < 0n ? -bigint : bigint;
  return BigInt.asUintN(65536, size) === size && bigint;
}

/**
 * How tags are read: [read, fill] of each. read(body, at, handle) gives the value; where the body is of another form it gives
 * false, or throws. What may have references to itself inside is empty then, and fill(value, body, at) fills it. at is of a
 * walk that is at the body, and handle(id, kind) makes what stands for a handle.
 */
export const tags = {
  __proto__: null,
  "@undefined": [(body) => (body === true && undefined)],
  "@number": [(body) => isText(body) && /^(NaN|-?Infinity|-0)$/.test(body) && Number(body)],
  // Of 65536 bits are 19729 digits.
  "@bigint": [(body) => isText(body) && /^(0|-?[1-9]\d*)$/.test(body) && body.length <= 19730 && bounded(BigInt(body))],
  "@utf16": [(body) => stringOf(new Uint16Array(fromBase64(body).buffer))],
  "@bytes": [fromBase64],
  "@handle": [(body, at, handle) => {
    if (isText(body)) return handle(body, "function");
    return areTexts(body) && /^(iterator|stream)$/.test(body[1]) && handle(...body);
  }],
  "@object": [(body) => isObject(body) && {}, members],
};

/**
 * How objects are written: [tag, member, write] by class string. A class string alone can be a lie: the member tells, where
 * there is one, which only objects of the class have. write(object, at, own, later) gives the body of the tag. at is of a
 * walk that is at the body, own what the member has or gives, and later(blob) stands for bytes that have to be read first.
 */
export const classes = { __proto__: null };

// tag has objects of one class cross: write and member are as in classes, read and fill as in tags.
function tag(kind, member, write, read, fill, name = `@${kind.toLowerCase()}`) {
  classes[kind] = [name, member, write];
  tags[name] = [read, fill];
}

// JSON has null where the time is NaN.
tag("Date", "getTime", (date, at, time) => time, (body) => {
  const date = new Date(body ?? NaN);
  return (body === null || Number(date) === body) && date;
});
tag("RegExp", "source", ({ source, flags }) => [source, flags], (body) => areTexts(body) && new RegExp(...body));
tag("URL", "href", ({ href }) => href, (body) => isText(body) && new URL(body));

for (const kind of ["Boolean", "Number", "String", "BigInt"]) {
  tag(kind, "valueOf", (box, at, value) => [at(value, 0)], (body, at) => {
    const value = isArray(body) && body.length === 1 ? at(body[0], 0) : null;
    return value !== undefined && value !== null && Object(value) !== value && Object(value);
  }, undefined, "@boxed");
}

const entries = (list, at) => from(list, ([key, value], i) => [at(key, i, 0), at(value, i, 1)]);

tag("Map", "size", entries, (body) => arePairs(body) && new Map(), (map, body, at) => {
  for (const entry of entries(body, at)) map.set(...entry);
});
tag("Set", "size", from, (body) => isArray(body) && new Set(), (set, body, at) => {
  for (const item of from(body, at)) set.add(item);
});

// Bytes, and the classes that show them.

/** Classes whose bytes cross with their name, where there is such a class. */
const bufferKind = /^(ArrayBuffer|DataView|((Big)?(Int|Uint)|Float)\d+(Clamped)?Array)$/;

tag("ArrayBuffer", "byteLength", (buffer) => ["ArrayBuffer", toBase64(buffer)], (body) => {
  if (!areTexts(body) || !bufferKind.test(body[0])) return false;
  const { buffer } = fromBase64(body[1]);
  return body[0] === "ArrayBuffer" ? buffer : new globalThis[body[0]](buffer);
}, undefined, "@buffer");

/** The tag of a view, with its body. */
export function viewTag(view) {
  const text = toBase64(view);
  // Typed arrays have their class, whatever the subclass, as their class string.
  const kind = Reflect.get(Uint8Array.prototype, Symbol.toStringTag, view) ?? "DataView";
  return kind === "Uint8Array" ? { "@bytes": text } : { "@buffer": [kind, text] };
}

// Errors. Members that are strings are not enumerable, nor are values that have a meaning.

const errorTexts = ["name", "message", "stack"];
const errorValues = ["cause", "errors"];

/** A line of a stack that names a place in the host's files, which are nobody's business. */
const hostFrame = /(^\s*at |@).*:\d+:\d+\)?$/m;

/** The body of an Error's tag. */
export function errorBody(error, at) {
  const texts = {};
  for (const key of errorTexts) texts[key] = textOf(error, key);
  if (!hasOwn(error, "stack") || texts.stack === "" || hostFrame.test(texts.stack)) delete texts.stack;
  const keys = new Set([...errorValues.filter((key) => hasOwn(error, key)), ...keysOf(error)]);
  return members(texts, error, at, [...keys].filter((key) => !errorTexts.includes(key)));
}

tags["@error"] = [(body) => {
  const { name = "Error", message = "", stack = `${name}: ${message}` } = body;
  const texts = { name, message, stack };
  if (!isObject(body) || !Object.values(texts).every(isText)) return false;
  const error = new (/^(Aggregate|Eval|Range|Reference|Syntax|Type|URI)Error$/.test(name) ? globalThis[name] : Error)([]);
  delete error.errors;
  for (const key of errorTexts) if (error[key] !== texts[key]) define(error, key, texts[key]);
  return error;
}, (error, body, at) => {
  for (const key of keysOf(body)) {
    if (!errorTexts.includes(key)) (errorValues.includes(key) ? define : put)(error, key, at(body[key], key));
  }
}];

// textOf gives "" for what has no text: a symbol, and what throws.
function textOf(error, key) {
  try {
    return `${error[key]}`;
  } catch {
    return "";
  }
}

// The web's classes.

// The names of headers are looked at by Headers.
const areHeaders = (list) => isArray(list) && list.every((pair) => areTexts(pair) && /^[^\0\n\r\u0100-\uffff]*$/.test(pair[1]));
const bytesIn = (tree) => (keysOf(tree).length === 1 ? fromBase64(tree["@bytes"]) : undefined);

tag("Headers", "", (headers) => [...headers], (body) => areHeaders(body) && new Headers(body));
tag("FormData", "", entries, (body, at) => {
  const form = new FormData();
  const areEntries = arePairs(body) && body.every(([name, item], i) => {
    const value = at(item, i, 1);
    if (!isText(name) || !(isText(item) || value instanceof File)) return false;
    form.append(name, value);
    return true;
  });
  return areEntries && form;
});

/** How members cross that do not as they are: [write(object, later), read(tree)], undefined where there is nothing to tell. */
const special = {
  __proto__: null,
  headers: [({ headers }) => [...headers], (list) => (areHeaders(list) ? list : undefined)],
  body: [(message, later) => (message.body ? later(message) : null), (tree) => (tree === null ? null : bytesIn(tree))],
  data: [(blob, later) => later(blob), bytesIn],
  type: [({ type, status }) => (status === undefined || type === "error" ? type : undefined)], // of a Blob, or of a Response
  referrer: [({ referrer }) => (referrer === "" ? "no-referrer" : undefined)], // a page's address does not leave it
};
const ifAlike = (value, example) => (typeof value === typeof example && (typeof value !== "number" || Number.isSafeInteger(value)) ? value : undefined);

// tagOfMembers has objects of a class cross by their members: all of required, which has an example of each, and those of
// options that are not what they are usually. make(members, more) makes one. Gives read(body, more) of the tag.
function tagOfMembers(kind, make, required, options) {
  const all = { __proto__: null, ...required, ...options };

  function write(object, at, own, later) {
    const body = {};
    for (const key in all) {
      const value = special[key] ? special[key][0](object, later) : object[key];
      if (key in required || (value !== undefined && value !== all[key])) body[key] = value;
    }
    return body;
  }

  function read(body, more) {
    const found = {};
    for (const key of keysOf({ ...required, ...body })) {
      const value = key in all ? (special[key]?.[1] ?? ifAlike)(body[key], all[key]) : undefined;
      if (value === undefined) refuse(`its ${key.slice(0, 80)} is missing, unknown or of another kind`);
      found[key] = value;
    }
    return make(found, more);
  }

  tag(kind, "", write, (body) => read(body));
  return read;
}

tagOfMembers("Blob", ({ data, ...options }) => new Blob([data], options), { type: "", data: null });
tagOfMembers("File", ({ name, data, ...options }) => new File([data], name, options), { name: "", type: "", lastModified: 0, data: null });

/** The Request of a tag's body. more has further options of it. */
export const readRequest = tagOfMembers("Request", ({ url, mode, referrer, ...init }, more) => {
  return new Request(url, { ...init, mode: mode === "navigate" ? undefined : mode, referrer: referrer && "", ...more });
}, { method: "", url: "", headers: [], body: null }, {
  mode: "cors", credentials: "same-origin", cache: "default", redirect: "follow", referrer: "", referrerPolicy: "", integrity: "", keepalive: false,
});

tagOfMembers("Response", (told) => {
  if (told.status === 0 && told.type === "error") return Response.error();
  const response = new Response(told.body, told);
  for (const key of ["url", "type", "redirected"]) {
    if ((told[key] ?? response[key]) !== response[key]) define(response, key, told[key]);
  }
  return response;
}, { status: 0, statusText: "", url: "", headers: [], body: null }, { type: "", redirected: false });

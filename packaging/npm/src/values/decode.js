// From the text of the protocol's value codec to JavaScript values. What is not exactly a value of the codec is refused.

import { fromBase64 } from "./base64.js";
import { define, errorTexts, errorValues, fits, Handle, isBufferKind, isObject, maxArrayLength, maxDepth, maxParts, pointerStep, put, ValueError } from "./classes.js";
import { parse } from "./json.js";

/** The value of a text. Throws a SyntaxError where it is not JSON and a ValueError where it is not a value. */
export function decode(text) {
  return decodeTree(parse(text));
}

/** decode after JSON.parse. The tree is not changed. handle(id, kind) makes the objects of handles. */
export function decodeTree(tree, handle = (id, kind) => new Handle(id, kind)) {
  return new Decoder(tree, handle).value(tree);
}

class Decoder {
  #root;
  #made = new Map(); // by object of the tree
  #steps = []; // to the place that is being read
  #parts = 0;

  constructor(root, handle) {
    this.#root = root;
    this.handle = handle;
  }

  value(tree) {
    if (++this.#parts > maxParts) this.fail(`it has more than ${maxParts} parts`);
    if (tree === Infinity || tree === -Infinity) this.fail("a number is out of range");
    if (typeof tree !== "object" || tree === null) return tree;
    if (this.#steps.length >= maxDepth) this.fail(`it is nested deeper than ${maxDepth}`);
    if (Array.isArray(tree)) return this.#array(tree);
    const keys = Object.keys(tree);
    return keys.length === 1 && keys[0][0] === "@" ? this.#tagged(tree, keys[0]) : this.#members(tree, keys);
  }

  fail(reason) {
    throw new ValueError(this.#steps.map(pointerStep).join(""), reason);
  }

  /** Notes the object that stands for a place of the tree, for references to it. */
  made(tree, object) {
    this.#made.set(tree, object);
    return object;
  }

  /** The value of tree, which is so many steps further. */
  at(tree, ...steps) {
    this.#steps.push(...steps);
    const value = this.value(tree);
    this.#steps.length -= steps.length;
    return value;
  }

  // Trees are deep: what is called at each level has few variables.
  #members(tree, keys) {
    const object = this.made(tree, {});
    for (const key of keys) {
      this.#steps.push(key);
      put(object, key, this.value(tree[key]));
      this.#steps.pop();
    }
    return object;
  }

  #array(tree) {
    const array = this.made(tree, []);
    let length = 0;
    for (let i = 0; i < tree.length; i++) {
      const holes = holesOf(tree[i]);
      this.#steps.push(i);
      if (holes > 0) length += holes;
      else array[length++] = this.value(tree[i]);
      this.#steps.pop();
      if (length > maxArrayLength) this.fail("it is longer than an array can be");
    }
    array.length = length;
    return array;
  }

  #tagged(tree, tag) {
    const body = tree[tag];
    if (tag === "@undefined" && body === true) return undefined;
    if (tag === "@ref") return this.#resolve(body);
    const [what, read] = Object.hasOwn(tags, tag) ? tags[tag] : this.fail(`unknown tag ${tag.slice(0, 80)}`);
    let value;
    try {
      value = read(body, this, tree);
    } catch (error) {
      throw error instanceof ValueError ? error : this.fail(`${tag}: ${error.message}`);
    }
    if (value === undefined || value === false) this.fail(`${tag} is ${what}`);
    return typeof value === "object" ? this.made(tree, value) : value;
  }

  #resolve(pointer) {
    let place = this.#root;
    const [first, ...steps] = typeof pointer === "string" ? pointer.split("/") : [];
    for (const step of steps) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
      const there = isObject(place) || (Array.isArray(place) && /^(0|[1-9]\d*)$/.test(key));
      place = there && Object.hasOwn(place, key) ? place[key] : undefined;
    }
    return first === "" && this.#made.has(place) ? this.#made.get(place) : this.fail("@ref is a JSON Pointer to an object that came before");
  }
}

const holesOf = (item) => (isObject(item) && Number.isInteger(item["@hole"]) && Object.keys(item).length === 1 ? item["@hole"] : 0);

const numbers = { NaN, Infinity, "-Infinity": -Infinity, "-0": -0 };
const errors = { __proto__: null, AggregateError, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const areTexts = (list) => Array.isArray(list) && list.length === 2 && list.every((item) => typeof item === "string");
const arePairs = (list) => Array.isArray(list) && list.every((pair) => Array.isArray(pair) && pair.length === 2);

// For each tag what its body is, and how it is read: undefined or false where it is not that. The Decoder reads values that are
// in it, and tree is where the tag stands: what may hold references to itself is noted before they are read.
const tags = {
  "@undefined": ["true", () => false],
  "@number": ["the name of a number that JSON has not", (body) => typeof body === "string" && Object.hasOwn(numbers, body) && numbers[body]],
  "@bigint": ["a decimal text of at most 65536 bits", (body) => {
    // Of 65536 bits are 19729 digits.
    const value = typeof body === "string" && body.length <= 19730 && /^(0|-?[1-9]\d*)$/.test(body) && BigInt(body);
    return value !== false && fits(value) && value;
  }],
  "@utf16": ["base64 of pairs of bytes", (body) => {
    const bytes = bytesOf(body);
    if (bytes === undefined || bytes.length % 2 !== 0) return undefined;
    let text = "";
    for (let i = 0; i < bytes.length; i += 2) text += String.fromCharCode(bytes[i] | (bytes[i + 1] << 8));
    return text;
  }],
  "@date": ["whole milliseconds or null", (body) => (body === null || (Number.isInteger(body) && Math.abs(body) <= 8.64e15)) && new Date(body ?? NaN)],
  "@regexp": ["a source and flags", (body) => areTexts(body) && new RegExp(...body)],
  "@url": ["a URL", (body) => typeof body === "string" && new URL(body)],
  "@map": ["an array of pairs", (body, decoder, tree) => {
    const map = arePairs(body) && decoder.made(tree, new Map());
    if (map) body.forEach(([key, value], i) => map.set(decoder.at(key, "@map", i, 0), decoder.at(value, "@map", i, 1)));
    return map;
  }],
  "@set": ["an array", (body, decoder, tree) => {
    const set = Array.isArray(body) && decoder.made(tree, new Set());
    if (set) body.forEach((item, i) => set.add(decoder.at(item, "@set", i)));
    return set;
  }],
  "@error": ["an object whose name, message and stack are strings", (body, decoder, tree) => {
    if (!isObject(body) || errorTexts.some((key) => Object.hasOwn(body, key) && typeof body[key] !== "string")) return undefined;
    const { name = "Error", message = "", stack = `${name}: ${message}`, ...others } = body;
    const error = decoder.made(tree, errorOf(name, message));
    define(error, "stack", stack);
    for (const key of Object.keys(others)) (errorValues.includes(key) ? define : put)(error, key, decoder.at(others[key], "@error", key));
    return error;
  }],
  "@bytes": ["base64", (body) => bytesOf(body)],
  "@buffer": ["a kind and base64", (body) => {
    const bytes = areTexts(body) && isBufferKind(body[0]) && bytesOf(body[1]);
    return bytes && (body[0] === "ArrayBuffer" ? bytes.buffer : new globalThis[body[0]](bytes.buffer));
  }],
  "@boxed": ["an array of one primitive", (body, decoder) => {
    const value = Array.isArray(body) && body.length === 1 ? decoder.at(body[0], "@boxed", 0) : undefined;
    return value !== null && /^(string|number|boolean|bigint)$/.test(typeof value) && Object(value);
  }],
  "@object": ["an object", (body, decoder, tree) => {
    const object = isObject(body) && decoder.made(tree, {});
    if (object) for (const key of Object.keys(body)) put(object, key, decoder.at(body[key], "@object", key));
    return object;
  }],
  "@handle": ['a string, or one and "iterator" or "stream"', (body, decoder) => {
    if (typeof body === "string") return decoder.handle(body, "function");
    return areTexts(body) && /^(iterator|stream)$/.test(body[1]) && decoder.handle(...body);
  }],
  "@hole": ["a whole number from 1, in an array", () => false],
  "@blob": ["a type and data", (body) => {
    const { type, data } = fields(body, { type: text, data: bytes });
    return new Blob([data], { type });
  }],
  "@file": ["a Blob's, with a name and a time", (body) => {
    const { name, data, ...options } = fields(body, { name: text, type: text, lastModified: whole, data: bytes });
    return new File([data], name, options);
  }],
  "@headers": ["an array of names and values", (body) => headerList(body) && new Headers(body)],
  "@formdata": ["an array of names with strings or files", (body, decoder) => {
    const form = arePairs(body) && new FormData();
    const append = ([name, item], i) => {
      const value = decoder.at(item, "@formdata", i, 1);
      const ok = typeof name === "string" && (typeof item === "string" || value instanceof File);
      if (ok) form.append(name, value);
      return ok;
    };
    return form && body.every(append) && form;
  }],
  "@request": ["a Request's members", (body) => {
    const { url, mode, referrer, ...init } = fields(body, { method: text, url: text, headers: headerList, body: bytesOrNull }, requestFields);
    if (init.body === null) delete init.body;
    if (referrer !== undefined) init.referrer = "";
    if (mode !== undefined && mode !== "navigate") init.mode = mode;
    return new Request(url, init);
  }],
  "@response": ["a Response's members", (body) => {
    const told = fields(body, { status: whole, statusText: text, url: text, headers: headerList, body: bytesOrNull }, { type: text, redirected: flag });
    if (told.status === 0 && told.type === "error") return Response.error();
    const response = new Response(told.body, told);
    for (const key of ["url", "type", "redirected"]) {
      if (told[key] !== undefined && told[key] !== response[key]) Object.defineProperty(response, key, { value: told[key], configurable: true });
    }
    return response;
  }],
};

const bytesOf = (body) => (typeof body === "string" ? fromBase64(body) : undefined);

// Readers of members: undefined where the member is not of that kind.
const text = (value) => (typeof value === "string" ? value : undefined);
const flag = (value) => (typeof value === "boolean" ? value : undefined);
const whole = (value) => (Number.isSafeInteger(value) ? value : undefined);
const bytes = (value) => (isObject(value) && Object.keys(value).length === 1 ? bytesOf(value["@bytes"]) : undefined);
const bytesOrNull = (value) => (value === null ? null : bytes(value));
const isHeader = (pair) => areTexts(pair) && /^[\w!#$%&'*+\-.^`|~]+$/.test(pair[0]) && /^[^\0\n\r\u0100-\uffff]*$/.test(pair[1]);
const headerList = (value) => (Array.isArray(value) && value.every(isHeader) ? value : undefined);
const requestFields = { mode: text, credentials: text, cache: text, redirect: text, referrer: text, referrerPolicy: text, integrity: text, keepalive: flag };

// fields reads the members of a body: all of required, some of optional and no other.
function fields(body, required, optional) {
  const readers = { __proto__: null, ...required, ...optional };
  const found = { __proto__: null };
  for (const key of Object.keys({ ...required, ...body })) {
    found[key] = readers[key]?.(body[key]);
    if (found[key] === undefined) throw new TypeError(`its ${key.slice(0, 80)} is missing, unknown or of another kind`);
  }
  return found;
}

function errorOf(name, message) {
  const error = new (errors[name] ?? Error)([]);
  delete error.errors;
  define(error, "message", message);
  if (error.name !== name) define(error, "name", name);
  return error;
}

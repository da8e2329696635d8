// From the text of the protocol's value codec to JavaScript values. What is not exactly a value of the codec is refused.

import { fromBase64 } from "./base64.js";
import { bufferKinds, Handle, maxArrayLength, maxBigIntDigits, maxDepth, maxParts, pointerStep, put, ValueError } from "./classes.js";
import { parse } from "./json.js";

/** The value of a text. Throws a SyntaxError where it is not JSON and a ValueError where it is not a value. */
export function decode(text) {
  return decodeTree(parse(text));
}

/** decode after JSON.parse. The tree is not changed. */
export function decodeTree(tree) {
  return new Decoder(tree).value(tree, "", 0);
}

class Decoder {
  #root;
  #made = new Map(); // by object of the tree
  #parts = 0;

  constructor(root) {
    this.#root = root;
  }

  value(tree, path, depth) {
    if (++this.#parts > maxParts) throw new ValueError(path, `it has more than ${maxParts} parts`);
    if (typeof tree === "number" && !Number.isFinite(tree)) throw new ValueError(path, "a number is out of range");
    if (typeof tree !== "object" || tree === null) return tree;
    if (depth >= maxDepth) throw new ValueError(path, `it is nested deeper than ${maxDepth}`);
    if (Array.isArray(tree)) return this.#array(tree, path, depth);
    const keys = Object.keys(tree);
    if (keys.length === 1 && keys[0][0] === "@") return this.#tagged(tree, keys[0], tree[keys[0]], path, depth);
    return this.members(this.made(tree, {}), tree, keys, path, depth);
  }

  /** Notes the object that stands for a place of the tree, for references to it. */
  made(tree, object) {
    this.#made.set(tree, object);
    return object;
  }

  members(into, tree, keys, path, depth) {
    for (const key of keys) put(into, key, this.value(tree[key], path + pointerStep(key), depth + 1));
    return into;
  }

  #array(tree, path, depth) {
    const array = this.made(tree, []);
    let length = 0;
    for (let i = 0; i < tree.length; i++) {
      const item = tree[i];
      const holes = holesOf(item);
      if (holes === undefined) array[length++] = this.value(item, `${path}/${i}`, depth + 1);
      else if (Number.isInteger(holes) && holes > 0) length += holes;
      else throw new ValueError(`${path}/${i}`, "@hole is a whole number from 1");
      if (length > maxArrayLength) throw new ValueError(path, "it is longer than an array can be");
    }
    array.length = length;
    return array;
  }

  #tagged(tree, tag, body, path, depth) {
    const fail = (reason) => {
      throw new ValueError(path, reason);
    };
    if (tag === "@ref") return this.#resolve(body, path);
    if (!Object.hasOwn(tags, tag)) return fail(`unknown tag ${JSON.stringify(tag).slice(0, 80)}`);
    return tags[tag].call(this, body, fail, tree, `${path}/${tag}`, depth + 1);
  }

  #resolve(pointer, path) {
    let place = this.#root;
    if (typeof pointer !== "string" || (pointer !== "" && pointer[0] !== "/")) throw new ValueError(path, "@ref is a JSON Pointer");
    for (const step of pointer.split("/").slice(1)) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
      const there = typeof place === "object" && place !== null && Object.hasOwn(place, key) && (!Array.isArray(place) || /^(0|[1-9]\d*)$/.test(key));
      if (!there) throw new ValueError(path, "@ref leads to no object");
      place = place[key];
    }
    if (!this.#made.has(place)) throw new ValueError(path, "@ref leads to no object, or forward");
    return this.#made.get(place);
  }
}

function holesOf(item) {
  return item !== null && typeof item === "object" && !Array.isArray(item) && "@hole" in item && Object.keys(item).length === 1 ? item["@hole"] : undefined;
}

const numbers = { NaN, Infinity, "-Infinity": -Infinity, "-0": -0 };
const errors = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const areTexts = (list, length) => Array.isArray(list) && list.length === length && list.every((item) => typeof item === "string");

// tags read the body of each tag. `this` is the Decoder, fail throws at the tag, tree is where the tag stands.
const tags = {
  "@undefined": (body, fail) => (body === true ? undefined : fail("@undefined is true")),
  "@number": (body, fail) => (typeof body === "string" && Object.hasOwn(numbers, body) ? numbers[body] : fail("@number names a number that JSON has not")),
  "@bigint": (body, fail) => {
    const ok = typeof body === "string" && body.length <= maxBigIntDigits + 1 && /^(0|-?[1-9]\d*)$/.test(body);
    const value = ok ? BigInt(body) : fail("@bigint is a decimal text");
    const size = value < 0n ? -value : value;
    return BigInt.asUintN(65536, size) === size ? value : fail("@bigint has more than 65536 bits");
  },
  "@utf16": (body, fail) => {
    const bytes = bytesOf(body);
    if (bytes === undefined || bytes.length % 2 !== 0) return fail("@utf16 is base64 of pairs of bytes");
    const units = Array.from({ length: bytes.length / 2 }, (_, i) => bytes[2 * i] | (bytes[2 * i + 1] << 8));
    return units.reduce((text, unit) => text + String.fromCharCode(unit), "");
  },
  "@date"(body, fail, tree) {
    const ok = body === null || (Number.isInteger(body) && Math.abs(body) <= 8.64e15);
    return ok ? this.made(tree, new Date(body ?? NaN)) : fail("@date is whole milliseconds or null");
  },
  "@regexp"(body, fail, tree) {
    if (!areTexts(body, 2)) return fail("@regexp is a source and flags");
    try {
      return this.made(tree, new RegExp(body[0], body[1]));
    } catch (error) {
      return fail(error.message);
    }
  },
  "@url"(body, fail, tree) {
    return typeof body === "string" && URL.canParse(body) ? this.made(tree, new URL(body)) : fail("@url is a URL");
  },
  "@map"(body, fail, tree, path, depth) {
    if (!Array.isArray(body) || !body.every((pair) => Array.isArray(pair) && pair.length === 2)) return fail("@map is an array of pairs");
    const map = this.made(tree, new Map());
    body.forEach(([key, value], i) => {
      const k = this.value(key, `${path}/${i}/0`, depth + 2);
      map.set(k, this.value(value, `${path}/${i}/1`, depth + 2));
    });
    return map;
  },
  "@set"(body, fail, tree, path, depth) {
    if (!Array.isArray(body)) return fail("@set is an array");
    const set = this.made(tree, new Set());
    body.forEach((item, i) => set.add(this.value(item, `${path}/${i}`, depth + 1)));
    return set;
  },
  "@error"(body, fail, tree, path, depth) {
    if (!isObject(body)) return fail("@error is an object");
    const text = (key) => (!Object.hasOwn(body, key) || typeof body[key] === "string" ? body[key] : fail(`${key} is a string`));
    const [name = "Error", message = "", stack] = ["name", "message", "stack"].map(text);
    const error = this.made(tree, errorOf(name, message));
    define(error, "stack", stack ?? `${name}: ${message}`);
    for (const key of Object.keys(body)) {
      if (key === "name" || key === "message" || key === "stack") continue;
      const value = this.value(body[key], path + pointerStep(key), depth + 1);
      if (key === "cause" || key === "errors") define(error, key, value);
      else put(error, key, value);
    }
    return error;
  },
  "@bytes"(body, fail, tree) {
    return this.made(tree, bytesOf(body) ?? fail("@bytes is base64"));
  },
  "@buffer"(body, fail, tree) {
    if (!areTexts(body, 2) || !Object.hasOwn(bufferKinds, body[0])) return fail("@buffer is a kind and base64");
    const bytes = bytesOf(body[1]);
    if (bytes === undefined || bytes.length % bufferKinds[body[0]] !== 0) return fail("@buffer is base64 of whole elements");
    if (body[0] === "ArrayBuffer") return this.made(tree, bytes.buffer);
    const View = globalThis[body[0]] ?? fail(`this runtime has no ${body[0]}`);
    return this.made(tree, new View(bytes.buffer));
  },
  "@boxed"(body, fail, tree, path, depth) {
    if (!Array.isArray(body) || body.length !== 1) return fail("@boxed is an array of one");
    const value = this.value(body[0], `${path}/0`, depth + 1);
    const ok = value !== null && ["string", "number", "boolean", "bigint"].includes(typeof value);
    return ok ? this.made(tree, Object(value)) : fail("@boxed is a primitive that has an object form");
  },
  "@object"(body, fail, tree, path, depth) {
    return isObject(body) ? this.members(this.made(tree, {}), body, Object.keys(body), path, depth) : fail("@object is an object");
  },
  "@handle"(body, fail) {
    if (typeof body === "string") return new Handle(body);
    const [id, kind] = Array.isArray(body) && body.length === 2 ? body : [];
    const known = typeof id === "string" && (kind === "iterator" || kind === "stream");
    return known ? new Handle(id, kind) : fail('@handle is a string, or one and "iterator" or "stream"');
  },
  "@hole": (_, fail) => fail("@hole stands in arrays only"),
  "@blob"(body, fail, tree) {
    const { type, data } = fields(body, { type: text, data: bytes }, {}, fail);
    return this.made(tree, new Blob([data], { type }));
  },
  "@file"(body, fail, tree) {
    const { name, type, lastModified, data } = fields(body, { name: text, type: text, lastModified: whole, data: bytes }, {}, fail);
    return this.made(tree, new File([data], name, { type, lastModified }));
  },
  "@headers"(body, fail, tree) {
    return this.made(tree, new Headers(headerList(body) ?? fail("@headers is an array of names and values")));
  },
  "@formdata"(body, fail, tree, path, depth) {
    const ok = Array.isArray(body) && body.every((pair) => Array.isArray(pair) && pair.length === 2 && typeof pair[0] === "string");
    const form = this.made(tree, ok ? new FormData() : fail("@formdata is an array of names with strings or files"));
    body.forEach(([name, item], i) => {
      const value = this.value(item, `${path}/${i}/1`, depth + 2);
      if (typeof item !== "string" && !(value instanceof File)) fail("@formdata has strings and files only");
      form.append(name, value);
    });
    return form;
  },
  "@request"(body, fail, tree) {
    const told = fields(body, { method: text, url: text, headers: headerList, body: bytesOrNull }, requestFields, fail);
    const { url, mode, referrer, ...init } = told;
    if (init.body === null) delete init.body;
    if (referrer !== undefined) init.referrer = "";
    if (mode !== undefined && mode !== "navigate") init.mode = mode;
    try {
      return this.made(tree, new Request(url, init));
    } catch (error) {
      return fail(error.message);
    }
  },
  "@response"(body, fail, tree) {
    const told = fields(body, { status: whole, statusText: text, url: text, headers: headerList, body: bytesOrNull }, { type: text, redirected: flag }, fail);
    const { status, statusText, url, headers, type } = told;
    if (status === 0 && type === "error") return this.made(tree, Response.error());
    try {
      const response = new Response(told.body, { status, statusText, headers });
      for (const [key, value] of [["url", url], ["type", type], ["redirected", told.redirected]]) {
        if (value !== undefined && value !== response[key]) Object.defineProperty(response, key, { value, configurable: true });
      }
      return this.made(tree, response);
    } catch (error) {
      return fail(error.message);
    }
  },
};

const bytesOf = (body) => (typeof body === "string" ? fromBase64(body) : undefined);

// Readers of members: undefined where the member is not of that kind.
const text = (value) => (typeof value === "string" ? value : undefined);
const flag = (value) => (typeof value === "boolean" ? value : undefined);
const whole = (value) => (Number.isSafeInteger(value) ? value : undefined);
const bytes = (value) => (isObject(value) && Object.keys(value).length === 1 ? bytesOf(value["@bytes"]) : undefined);
const bytesOrNull = (value) => (value === null ? null : bytes(value));
const isHeader = ([name, value]) => /^[\w!#$%&'*+\-.^`|~]+$/.test(name) && /^[^\0\n\r\u0100-\uffff]*$/.test(value);
const headerList = (value) => (Array.isArray(value) && value.every((pair) => areTexts(pair, 2) && isHeader(pair)) ? value : undefined);
const requestFields = { mode: text, credentials: text, cache: text, redirect: text, referrer: text, referrerPolicy: text, integrity: text, keepalive: flag };

// fields reads the members of a tag: all of required, some of optional and no other.
function fields(body, required, optional, fail) {
  if (!isObject(body)) return fail("the body of the tag is an object");
  const found = {};
  for (const key of Object.keys(body)) {
    const read = Object.hasOwn(required, key) ? required[key] : Object.hasOwn(optional, key) ? optional[key] : fail(`there is no member ${key.slice(0, 80)}`);
    found[key] = read(body[key]);
    if (found[key] === undefined) fail(`${key} is of another kind`);
  }
  for (const key of Object.keys(required)) if (!Object.hasOwn(found, key)) fail(`it lacks ${key}`);
  return found;
}

function errorOf(name, message) {
  if (name === "AggregateError") {
    const error = new AggregateError([], message);
    delete error.errors;
    return error;
  }
  const error = Object.hasOwn(errors, name) ? new errors[name](message) : new Error(message);
  define(error, "message", message);
  if (error.name !== name) define(error, "name", name);
  return error;
}

function define(object, key, value) {
  Object.defineProperty(object, key, { value, writable: true, enumerable: false, configurable: true });
}

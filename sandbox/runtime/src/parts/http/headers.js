// Headers (Fetch, 5.1: https://fetch.spec.whatwg.org/#headers-class). Of the guards only "immutable" is here, as the
// minimum common API has it: programs are not browsers, no header is forbidden to them.

export function makeHeaders(core) {
  const {
    arraySort, finish, isObject, iterable, list, push, requireArguments, SafeTypeError, stringCharCodeAt, stringIndexOf, stringSlice, stringToLowerCase, symbolIterator,
    toByteString, toRecord, iterate, define,
  } = core;
  let slotsOf, isHeaders;

  const tokenMarks = "!#$%&'*+-.^_`|~";
  function isToken(text) {
    if (text === "") return false;
    for (let i = 0; i < text.length; i++) {
      const unit = stringCharCodeAt(text, i);
      const alphanumeric = (unit >= 48 && unit <= 57) || (unit >= 65 && unit <= 90) || (unit >= 97 && unit <= 122);
      if (!alphanumeric && (unit > 126 || stringIndexOf(tokenMarks, text[i]) < 0)) return false;
    }
    return true;
  }

  const isSpace = (unit) => unit === 32 || unit === 9 || unit === 10 || unit === 13;
  /** Removes HTTP whitespace bytes at both ends. */
  function normalize(value) {
    let from = 0;
    let to = value.length;
    while (from < to && isSpace(stringCharCodeAt(value, from))) from++;
    while (to > from && isSpace(stringCharCodeAt(value, to - 1))) to--;
    return stringSlice(value, from, to);
  }

  function checkName(name) {
    if (!isToken(name)) throw new SafeTypeError(`'${name}' is not a valid header name.`);
    return stringToLowerCase(name);
  }
  function checkValue(value) {
    for (let i = 0; i < value.length; i++) {
      const unit = stringCharCodeAt(value, i);
      if (unit === 0 || unit === 10 || unit === 13) throw new SafeTypeError("The header value has a character that is not allowed.");
    }
    return value;
  }
  function checkMutable(slots) {
    if (slots.guard === "immutable") throw new SafeTypeError("The headers are immutable.");
  }

  // A header list with a guard; pairs are [name in lower case, value, name as it was given].
  class Slots {
    pairs = list();
    guard = "none";
    sorted = undefined;
  }

  function get(slots, name) {
    let value = null;
    for (let i = 0; i < slots.pairs.length; i++) {
      if (slots.pairs[i][0] === name) value = value === null ? slots.pairs[i][1] : `${value}, ${slots.pairs[i][1]}`;
    }
    return value;
  }
  function has(slots, name) {
    for (let i = 0; i < slots.pairs.length; i++) if (slots.pairs[i][0] === name) return true;
    return false;
  }
  function add(slots, name, value) {
    push(slots.pairs, [stringToLowerCase(name), value, name]);
    slots.sorted = undefined;
  }
  function remove(slots, name, from = 0) {
    const { pairs } = slots;
    let kept = from;
    for (let i = from; i < pairs.length; i++) if (pairs[i][0] !== name) pairs[kept++] = pairs[i];
    pairs.length = kept;
    slots.sorted = undefined;
  }
  function replace(slots, name, value) {
    const { pairs } = slots;
    for (let i = 0; i < pairs.length; i++) {
      if (pairs[i][0] !== stringToLowerCase(name)) continue;
      pairs[i] = [pairs[i][0], value, pairs[i][2]];
      remove(slots, pairs[i][0], i + 1);
      return;
    }
    add(slots, name, value);
  }

  // The order of code units; the engine's sort is stable.
  const byName = (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);

  /** "sort and combine": the list is kept until the headers change. */
  function sortedPairs(slots) {
    if (slots.sorted !== undefined) return slots.sorted;
    const pairs = list();
    for (let i = 0; i < slots.pairs.length; i++) push(pairs, slots.pairs[i]);
    arraySort(pairs, byName);
    const sorted = list();
    for (let i = 0; i < pairs.length; i++) {
      const name = pairs[i][0];
      const last = sorted[sorted.length - 1];
      if (last !== undefined && last[0] === name && name !== "set-cookie") last[1] += `, ${pairs[i][1]}`;
      else push(sorted, [name, pairs[i][1]]);
    }
    return (slots.sorted = sorted);
  }

  function append(slots, name, value) {
    const normal = normalize(value);
    checkName(name);
    checkValue(normal);
    checkMutable(slots);
    add(slots, name, normal);
  }

  const toPair = (item) => {
    const pair = isObject(item) ? iterate(item, item[symbolIterator], (v) => toByteString(v, "The header"), "The header") : undefined;
    if (pair === undefined || pair.length !== 2) throw new SafeTypeError("Each header must be a pair of name and value.");
    return pair;
  };

  /** Converts a HeadersInit to a list of pairs. */
  function toInit(init) {
    if (!isObject(init)) throw new SafeTypeError("The headers must be an object or a sequence of pairs.");
    const method = init[symbolIterator];
    if (method !== undefined && method !== null) {
      if (isHeaders(init) && method === Headers.prototype.entries && guestNext()) return copyOf(init);
      return iterate(init, method, toPair, "The headers");
    }
    return toRecord(init, (k) => toByteString(typeof k === "symbol" ? `${k}` : k, "The header name"), (v) => toByteString(v, "The header value"), "The headers");
  }
  // Whether the iterator of Headers is what it was, so that copying needs no iteration.
  const guestNext = () => pairNext === iteratorPrototype.next;
  const copyOf = (headers) => sortedPairs(slotsOf(headers));

  function fill(slots, pairs) {
    for (let i = 0; i < pairs.length; i++) append(slots, pairs[i][0], pairs[i][1]);
  }

  class Headers {
    #slots = new Slots();
    static {
      slotsOf = (value) => value.#slots;
      isHeaders = (value) => isObject(value) && #slots in value;
    }
    constructor(init = undefined) {
      if (init !== undefined) fill(this.#slots, toInit(init));
    }
    append(name, value) {
      const slots = this.#slots;
      requireArguments("append' on 'Headers", arguments.length, 2);
      append(slots, toByteString(name, "The header name"), toByteString(value, "The header value"));
    }
    delete(name) {
      const slots = this.#slots;
      requireArguments("delete' on 'Headers", arguments.length, 1);
      const key = checkName(toByteString(name, "The header name"));
      checkMutable(slots);
      remove(slots, key);
    }
    get(name) {
      const slots = this.#slots;
      requireArguments("get' on 'Headers", arguments.length, 1);
      return get(slots, checkName(toByteString(name, "The header name")));
    }
    getSetCookie() {
      const { pairs } = this.#slots;
      const cookies = [];
      for (let i = 0; i < pairs.length; i++) if (pairs[i][0] === "set-cookie") define(cookies, cookies.length, pairs[i][1]);
      return cookies;
    }
    has(name) {
      const slots = this.#slots;
      requireArguments("has' on 'Headers", arguments.length, 1);
      return has(slots, checkName(toByteString(name, "The header name")));
    }
    set(name, value) {
      const slots = this.#slots;
      requireArguments("set' on 'Headers", arguments.length, 2);
      const text = toByteString(name, "The header name");
      const normal = normalize(toByteString(value, "The header value"));
      checkName(text);
      checkValue(normal);
      checkMutable(slots);
      replace(slots, text, normal);
    }
  }
  iterable(Headers, "Headers", (value) => sortedPairs(slotsOf(value)));
  const iteratorPrototype = core.getPrototypeOf(new Headers().entries());
  const pairNext = iteratorPrototype.next;
  finish(Headers, { __proto__: null, name: "Headers" });

  return { __proto__: null, Headers, slotsOf, isHeaders, sortedPairs, toInit, fill, get, has, add, append, replace, isToken, normalize };
}

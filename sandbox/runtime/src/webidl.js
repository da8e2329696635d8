// Web IDL (https://webidl.spec.whatwg.org/): the conversions and the shape of interfaces, shared by all parts of the
// library. Interfaces are written as classes: a private field is the brand (its absence makes the engine throw a
// TypeError), and finish() gives the class the attributes that the standard asks for.

import {
  apply, define, defineProperty, floor, getOwnPropertyDescriptor, IteratorPrototype, list, makeSymbol, ownKeys, push, SafeTypeError,
  setPrototypeOf, stringCharCodeAt, stringToWellFormed, symbolIterator, toStringTag,
} from "./primordials.js";

/** Refuses a call with too few arguments, worded as browsers do. */
export function requireArguments(operation, given, required) {
  if (given >= required) return;
  const noun = required === 1 ? "argument" : "arguments";
  throw new SafeTypeError(
    `Failed to execute '${operation}': ${required} ${noun} required, but only ${given} present.`,
  );
}

/** Converts to an IDL `long`: 32 bits, wrapping, NaN is 0. Runs valueOf of the guest as the standard says. */
export const toLong = (value) => +value | 0;

/** Converts to an IDL `DOMString`. */
export const toDOMString = (value) => `${value}`;

const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

// ---- conversions (3.2). `what` names the value in messages.

const toUnsignedLong = (value) => +value >>> 0;
const toUnsignedShort = (value) => +value & 0xffff;
const toBoolean = (value) => !!value;
const toUnrestrictedDouble = (value) => +value;
function toDouble(value, what = "The value") {
  const number = +value;
  if (number - number !== 0) throw new SafeTypeError(`${what} is not a finite number.`);
  return number;
}
const truncate = (number) => (number < 0 ? -floor(-number) : floor(number)) + 0;

// [EnforceRange] of an integer type between low and high.
function toEnforced(value, low, high, what = "The value") {
  const integer = truncate(toDouble(value, what));
  if (integer < low || integer > high) throw new SafeTypeError(`${what} is outside the accepted range.`);
  return integer;
}

// [Clamp] of an integer type: rounds to nearest, ties to even.
function toClamped(value, low, high) {
  const number = +value;
  if (number !== number) return 0;
  if (number <= low) return low;
  if (number >= high) return high;
  const down = floor(number);
  const rest = number - down;
  return rest < 0.5 || (rest === 0.5 && down % 2 === 0) ? down : down + 1;
}

// `USVString`: lone surrogates become U+FFFD.
const toUSVString = (value) => stringToWellFormed(`${value}`);

// `ByteString`: code units up to 255.
function toByteString(value, what = "The value") {
  const text = `${value}`;
  for (let i = 0; i < text.length; i++) {
    if (stringCharCodeAt(text, i) > 255) throw new SafeTypeError(`${what} has a character that is not a byte.`);
  }
  return text;
}

// An enumeration: one of the strings of `values`.
function toEnum(value, values, what = "The value") {
  const text = `${value}`;
  for (let i = 0; i < values.length; i++) if (values[i] === text) return text;
  throw new SafeTypeError(`${what} '${text}' is not a valid value.`);
}

// A dictionary (3.2.17). members is a list of [name, convert, default], in the order in which the standard reads them
// (inherited dictionaries first, then by name). Absent members without a default stay absent; the default `required`
// throws.
const required = /* @__PURE__ */ makeSymbol("required");
function toDictionary(value, members, what = "The value") {
  const result = { __proto__: null };
  const absent = value === undefined || value === null;
  if (!absent && !isObject(value)) throw new SafeTypeError(`${what} is not an object.`);
  for (let i = 0; i < members.length; i++) {
    const member = members[i];
    const name = member[0];
    const given = absent ? undefined : value[name];
    if (given !== undefined) result[name] = member[1](given, `${what}'s '${name}'`);
    else if (member.length === 2) continue;
    else if (member[2] === required) throw new SafeTypeError(`${what} lacks the required member '${name}'.`);
    else result[name] = member[2];
  }
  return result;
}

// `sequence<T>` (3.2.21): iterates by the guest's own protocol.
function toSequence(value, convert, what = "The value") {
  const method = isObject(value) ? value[symbolIterator] : undefined;
  return iterate(value, method, convert, what);
}

// The rest of a sequence conversion once its iterator method is known.
function iterate(value, method, convert, what) {
  if (typeof method !== "function") throw new SafeTypeError(`${what} is not iterable.`);
  const iterator = apply(method, value, []);
  if (!isObject(iterator)) throw new SafeTypeError(`${what} has an iterator that is not an object.`);
  const { next } = iterator;
  const result = [];
  for (;;) {
    const step = apply(next, iterator, []);
    if (!isObject(step)) throw new SafeTypeError(`${what} has an iterator whose result is not an object.`);
    if (step.done) return result;
    define(result, result.length, convert(step.value, what));
  }
}

// `record<K, V>` (3.2.23) as a list of [key, value].
function toRecord(value, convertKey, convertValue, what = "The value") {
  if (!isObject(value)) throw new SafeTypeError(`${what} is not an object.`);
  const result = list();
  const index = { __proto__: null };
  const keys = ownKeys(value);
  for (let i = 0; i < keys.length; i++) {
    const descriptor = getOwnPropertyDescriptor(value, keys[i]);
    if (descriptor === undefined || !descriptor.enumerable) continue;
    const key = convertKey(keys[i], what);
    const item = [key, convertValue(value[keys[i]], what)];
    if (key in index) {
      result[index[key]] = item;
    } else {
      index[key] = result.length;
      push(result, item);
    }
  }
  return result;
}

// A callback function type (3.2.19).
function toCallback(value, what = "The value") {
  if (typeof value !== "function") throw new SafeTypeError(`${what} is not a function.`);
  return value;
}

/** The conversions as one object. */
export const conversions = {
  __proto__: null,
  isObject, requireArguments, toDOMString, toLong, toUnsignedLong, toUnsignedShort, toBoolean, toUnrestrictedDouble, toDouble, toEnforced, toClamped,
  toUSVString, toByteString, toEnum, required, toDictionary, toSequence, iterate, toRecord, toCallback,
};

// ---- interfaces (3.7)

/** What parts make interfaces with, over the host's functions. */
export function makeInterfaces(native) {
  const illegalConstructor = () => new SafeTypeError("Illegal constructor");

  // Gives a class the attributes of an interface object and of its prototype: members enumerable, Symbol.toStringTag,
  // and constants on both. Its objects are platform objects: a structured clone refuses them unless the part "clone"
  // knows how. Returns the class. options: {name, constants: {NAME: value}}.
  function finish(constructor, { name, constants }) {
    native.finish(constructor, name);
    const { prototype } = constructor;
    for (const key in constants) {
      const descriptor = { __proto__: null, value: constants[key], writable: false, enumerable: true, configurable: false };
      defineProperty(constructor, key, descriptor);
      defineProperty(prototype, key, descriptor);
    }
    return constructor;
  }

  // The pair iterator of an interface (3.7.10): adds entries, keys, values, forEach and Symbol.iterator to a class.
  // pairs(object) returns its current list of [key, value] and throws on a wrong object.
  function iterable(constructor, name, pairs) {
    class PairIterator {
      #target;
      #kind;
      #index = 0;
      constructor(target, kind) {
        this.#target = target;
        this.#kind = kind;
      }
      next() {
        const list = pairs(this.#target);
        if (this.#index >= list.length) return { value: undefined, done: true };
        const pair = list[this.#index++];
        const value = this.#kind === 0 ? pair[0] : this.#kind === 1 ? pair[1] : [pair[0], pair[1]];
        return { value, done: false };
      }
    }
    native.finish(PairIterator, `${name} Iterator`);
    const { prototype } = PairIterator;
    delete prototype.constructor;
    setPrototypeOf(prototype, IteratorPrototype);
    const start = (self, kind) => (pairs(self), new PairIterator(self, kind));
    const methods = {
      entries() { return start(this, 2); },
      keys() { return start(this, 0); },
      values() { return start(this, 1); },
      forEach(callback, self = undefined) {
        pairs(this);
        requireArguments(`forEach' on '${name}`, arguments.length, 1);
        toCallback(callback, "The callback");
        for (let i = 0; ; i++) {
          const list = pairs(this);
          if (i >= list.length) return;
          apply(callback, self, [list[i][1], list[i][0], this]);
        }
      },
    };
    const open = (value, enumerable) => ({ __proto__: null, value, writable: true, enumerable, configurable: true });
    for (const key in methods) defineProperty(constructor.prototype, key, open(methods[key], true));
    defineProperty(constructor.prototype, symbolIterator, open(methods.entries, false));
  }

  return { __proto__: null, illegalConstructor, finish, iterable };
}

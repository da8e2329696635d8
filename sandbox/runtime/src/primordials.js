// The intrinsics that the library uses, taken while the global is still untouched. Guest code may replace or
// poison any prototype later; nothing here looks them up again.
//
// Rules for the rest of the library, which keep it so:
//   - no spread, for-of or array destructuring (they call Array.prototype[Symbol.iterator]);
//   - lists that grow are made by list(), whose missing prototype keeps setters of the guest out;
//   - `arguments` and strings have Object.prototype behind them: an argument that may be absent is a parameter with a
//     default, and where a text may have ended stringCharAt reads it;
//   - object literals that are read for absent keys, and property descriptors, start with `__proto__: null`;
//   - regular expressions and string methods that dispatch on symbols are not used.

const { bind, call } = Function.prototype;

/** uncurry(f)(self, a, b) is f.call(self, a, b), whatever became of Function.prototype.call. */
export const uncurry = bind.bind(call);

const getter = (prototype, key) => uncurry(Object.getOwnPropertyDescriptor(prototype, key).get);
const TypedArrayPrototype = Object.getPrototypeOf(Uint8Array.prototype);
const MapIteratorPrototype = Object.getPrototypeOf(new Map().entries());
const SetIteratorPrototype = Object.getPrototypeOf(new Set().values());

export const global = globalThis;

export const {
  apply,
  defineProperty,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  ownKeys,
} = Reflect;
export const { freeze, hasOwn, setPrototypeOf } = Object;

export const isArrayIndexLimit = 0xffffffff;

export const { floor, max, min } = Math;
export const dateNow = Date.now;
export const dateToISOString = uncurry(Date.prototype.toISOString);
export const dateValue = uncurry(Date.prototype.valueOf);
export const isNaN = Number.isNaN;
export const parseIntegerText = parseInt;
export const parseFloatText = parseFloat;
export const toString = String;
/** Runs text as a script of the global scope: an indirect eval. */
export const evaluate = eval;
export const parseJSON = JSON.parse;
export const stringifyJSON = JSON.stringify;

export const promiseReject = Promise.reject.bind(Promise);

export const stringCharAt = uncurry(String.prototype.charAt);
export const stringCharCodeAt = uncurry(String.prototype.charCodeAt);
export const stringEndsWith = uncurry(String.prototype.endsWith);
export const stringIncludes = uncurry(String.prototype.includes);
export const stringIndexOf = uncurry(String.prototype.indexOf);
export const stringPadEnd = uncurry(String.prototype.padEnd);
export const stringPadStart = uncurry(String.prototype.padStart);
export const stringRepeat = uncurry(String.prototype.repeat);
export const stringSlice = uncurry(String.prototype.slice);
export const stringStartsWith = uncurry(String.prototype.startsWith);
export const numberToString = uncurry(Number.prototype.toString);
export const symbolToString = uncurry(Symbol.prototype.toString);
export const { toStringTag } = Symbol;

export const booleanValue = uncurry(Boolean.prototype.valueOf);
export const numberValue = uncurry(Number.prototype.valueOf);
export const stringValue = uncurry(String.prototype.valueOf);
export const symbolValue = uncurry(Symbol.prototype.valueOf);
export const bigintValue = uncurry(BigInt.prototype.valueOf);

export const SafeMap = Map;
export const mapDelete = uncurry(Map.prototype.delete);
export const mapGet = uncurry(Map.prototype.get);
export const mapHas = uncurry(Map.prototype.has);
export const mapSet = uncurry(Map.prototype.set);
export const mapSize = getter(Map.prototype, "size");
export const mapEntries = uncurry(Map.prototype.entries);
export const mapIteratorNext = uncurry(MapIteratorPrototype.next);
export const setSize = getter(Set.prototype, "size");
export const setValues = uncurry(Set.prototype.values);
export const setIteratorNext = uncurry(SetIteratorPrototype.next);
export const SafeWeakMap = WeakMap;
export const weakMapGet = uncurry(WeakMap.prototype.get);
export const weakMapSet = uncurry(WeakMap.prototype.set);
export const weakRefDeref = uncurry(WeakRef.prototype.deref);

export const Bytes = Uint8Array;
export const typedArrayLength = getter(TypedArrayPrototype, "length");
export const bufferByteLength = getter(ArrayBuffer.prototype, "byteLength");
export const bufferDetached = getter(ArrayBuffer.prototype, "detached");
export const viewByteLength = getter(DataView.prototype, "byteLength");
export const viewByteOffset = getter(DataView.prototype, "byteOffset");
export const viewBuffer = getter(DataView.prototype, "buffer");

export const regexpSource = getter(RegExp.prototype, "source");
const flagGetters = [
  ["d", getter(RegExp.prototype, "hasIndices")],
  ["g", getter(RegExp.prototype, "global")],
  ["i", getter(RegExp.prototype, "ignoreCase")],
  ["m", getter(RegExp.prototype, "multiline")],
  ["s", getter(RegExp.prototype, "dotAll")],
  ["u", getter(RegExp.prototype, "unicode")],
  ["v", getter(RegExp.prototype, "unicodeSets")],
  ["y", getter(RegExp.prototype, "sticky")],
];

/** The flags of a regular expression, read from its internal slot. */
export function regexpFlags(regexp) {
  let flags = "";
  for (let i = 0; i < flagGetters.length; i++) {
    if (flagGetters[i][1](regexp)) flags += flagGetters[i][0];
  }
  return flags;
}

export const SafeTypeError = TypeError;
export const captureStackTrace = Error.captureStackTrace;

/** An empty growing list: an array that no setter on Array.prototype or Object.prototype can reach. */
export const list = () => setPrototypeOf([], null);

/** Appends to what list() made. */
export const push = (items, item) => {
  items[items.length] = item;
};

/** Joins a list of strings. */
export function join(items, separator) {
  let text = items.length > 0 ? items[0] : "";
  for (let i = 1; i < items.length; i++) text += separator + items[i];
  return text;
}

/** Defines a data property whatever stands on Object.prototype. */
export const define = (object, key, value, enumerable = true) =>
  defineProperty(object, key, { __proto__: null, value, writable: true, enumerable, configurable: true });

export const stringToWellFormed = uncurry(String.prototype.toWellFormed);
export const symbolIterator = Symbol.iterator;
export const IteratorPrototype = Iterator.prototype;

export const SafePromise = Promise;
export const promiseThen = uncurry(Promise.prototype.then);
export const SafeRangeError = RangeError;
export const { asyncIterator } = Symbol;
export const AsyncIteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf((async function* () {}).prototype));

export const { isView } = ArrayBuffer;
export const bufferTransfer = uncurry(ArrayBuffer.prototype.transfer);
export const bufferResizable = getter(ArrayBuffer.prototype, "resizable");
export const SafeArrayBuffer = ArrayBuffer;
export const typedArrayTag = getter(TypedArrayPrototype, toStringTag);
export const typedArrayBuffer = getter(TypedArrayPrototype, "buffer");
export const typedArrayByteLength = getter(TypedArrayPrototype, "byteLength");
export const typedArrayByteOffset = getter(TypedArrayPrototype, "byteOffset");
export const typedArraySet = uncurry(TypedArrayPrototype.set);

/** The constructors of views by name. */
export const viewConstructors = {
  __proto__: null, DataView, Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
  BigInt64Array, BigUint64Array, Float32Array, Float64Array,
  Float16Array: globalThis.Float16Array, // V8 13.6 has it behind a flag
};

export const stringLastIndexOf = uncurry(String.prototype.lastIndexOf);
export const stringToLowerCase = uncurry(String.prototype.toLowerCase);
export const arraySort = uncurry(Array.prototype.sort);

/** What extends it puts its private fields on the object that it is given. */
export class Identity {
  constructor(object) {
    return object;
  }
}

// What only parts of the library use. They are loaded when the guest may already have changed the originals.

export const { abs, ceil, clz32 } = Math;
export const { isArray } = Array;
export const { isInteger } = Number;
export const toBigInt = BigInt;
export const toNumber = Number;
export const makeSymbol = Symbol;
export const SafeError = Error;
export const SafeSyntaxError = SyntaxError;
export const promiseResolve = Promise.resolve.bind(Promise);
export const bigintToString = uncurry(BigInt.prototype.toString);
export const viewSetFloat64 = uncurry(DataView.prototype.setFloat64);
export const viewGetBigUint64 = uncurry(DataView.prototype.getBigUint64);
export const iteratorDrop = uncurry(Iterator.prototype.drop);
export const typedArrayFill = uncurry(TypedArrayPrototype.fill);
export const SafeRegExp = RegExp;
export const regexpExec = uncurry(RegExp.prototype.exec);
export const stringCodePointAt = uncurry(String.prototype.codePointAt);
export const { fromCodePoint } = String;
export const SafeWeakRef = WeakRef;
export const weakMapHas = uncurry(WeakMap.prototype.has);
export const SafeFinalizationRegistry = FinalizationRegistry;
export const registryRegister = uncurry(FinalizationRegistry.prototype.register);
export const mapClear = uncurry(Map.prototype.clear);
export const SafeSet = Set;
export const setAdd = uncurry(Set.prototype.add);
export const setClear = uncurry(Set.prototype.clear);
export const setDelete = uncurry(Set.prototype.delete);
export const setHas = uncurry(Set.prototype.has);
export const SafeWeakSet = WeakSet;
export const weakSetAdd = uncurry(WeakSet.prototype.add);
export const weakSetDelete = uncurry(WeakSet.prototype.delete);
export const weakSetHas = uncurry(WeakSet.prototype.has);

/** The members of a set in their order, as a list. */
export function setList(set) {
  const items = list();
  const iterator = setValues(set);
  for (let step = setIteratorNext(iterator); !step.done; step = setIteratorNext(iterator)) push(items, step.value);
  return items;
}

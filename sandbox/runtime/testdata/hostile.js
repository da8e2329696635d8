// The module "hostile" of the cases in hostile.txt: a guest that has put itself on everything that the library could
// reach. It watches the intrinsics of the global, all methods and getters on them, and every name that the library uses
// as a property, on Object.prototype; the array indexes too. NAMES stands for those names.
//
// spied(steps) runs steps(give) and returns [what steps gave, the names by which the guest's code was reached meanwhile], or
// the names alone. What is watched works as before, so that the steps come to their end. Steps make no use of it
// themselves: what they need they take along, and their options have no prototype.
//
// Some are reached rightly: a sequence is asked for its iterator, and the language asks a promise that is awaited for its
// constructor, and what one is resolved with for "then". What is reached otherwise must at least be the program's own.

const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { hasOwn } = Object;
const includes = Function.prototype.call.bind(String.prototype.includes);
const symbolText = Function.prototype.call.bind(Symbol.prototype.toString);
const typedArray = getPrototypeOf(Uint8Array);

let spying = false;
let reached = "";
function note(name) {
  if (!spying || includes(`, ${reached}, `, `, ${name}, `)) return;
  reached += reached === "" ? name : `, ${name}`;
}

// Makes a data property an accessor of the same value, and puts a note before the getter of an accessor.
function watch(object, key, name) {
  const found = getOwnPropertyDescriptor(object, key);
  if (!found.configurable) return;
  const { value, get, set } = found;
  defineProperty(object, key, {
    __proto__: null, configurable: true, enumerable: found.enumerable,
    get() {
      note(name);
      return get === undefined ? value : apply(get, this, []);
    },
    set(replacement) {
      note(`${name}=`);
      if (set !== undefined) apply(set, this, [replacement]);
      else defineProperty(this, key, { __proto__: null, value: replacement, writable: true, enumerable: true, configurable: true });
    },
  });
}

function watchAll(object, label) {
  const keys = ownKeys(object);
  for (let i = 0; i < keys.length; i++) {
    if (keys[i] === "prototype") continue;
    watch(object, keys[i], `${label}.${typeof keys[i] === "symbol" ? symbolText(keys[i]) : keys[i]}`);
  }
}

// A name that is nowhere is found on Object.prototype by who asks an object of the library for it.
function plant(prototype, key, label) {
  if (key in prototype) return;
  defineProperty(prototype, key, {
    __proto__: null, configurable: true,
    get() { note(`${label}.${key}`); },
    set(value) {
      note(`${label}.${key}=`);
      defineProperty(this, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    },
  });
}

const constructors = [
  "AggregateError", "Array", "ArrayBuffer", "AsyncDisposableStack", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean", "DataView",
  "Date", "DisposableStack", "Error", "EvalError", "FinalizationRegistry", "Float16Array", "Float32Array", "Float64Array", "Function",
  "Int16Array", "Int32Array", "Int8Array", "Iterator", "Map", "Number", "Object", "Promise", "Proxy", "RangeError",
  "ReferenceError", "RegExp", "Set", "String", "SuppressedError", "Symbol", "SyntaxError", "TypeError", "URIError", "Uint16Array",
  "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet",
];
const namespaces = ["Atomics", "Intl", "JSON", "Math", "Reflect"];
const functions = ["decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "eval", "isFinite", "isNaN", "parseFloat", "parseInt"];
const nameless = {
  __proto__: null,
  "%TypedArray%": typedArray, "%TypedArray%.prototype": typedArray.prototype,
  "%ArrayIterator%": getPrototypeOf([].values()), "%MapIterator%": getPrototypeOf(new Map().keys()), "%SetIterator%": getPrototypeOf(new Set().keys()),
  "%StringIterator%": getPrototypeOf(""[Symbol.iterator]()), "%RegExpStringIterator%": getPrototypeOf("".matchAll(/x/g)),
  "%Generator%": getPrototypeOf((function* () {}).prototype), "%AsyncGenerator%": getPrototypeOf((async function* () {}).prototype),
  "%AsyncIterator%": getPrototypeOf(getPrototypeOf((async function* () {}).prototype)), "%AsyncFunction%": getPrototypeOf(async () => {}),
};

function poison() {
  for (let i = 0; i < constructors.length; i++) {
    const constructor = globalThis[constructors[i]];
    if (constructor === undefined) continue;
    watchAll(constructor, constructors[i]);
    if (constructor.prototype !== undefined) watchAll(constructor.prototype, `${constructors[i]}.prototype`);
    watch(globalThis, constructors[i], constructors[i]);
  }
  for (let i = 0; i < namespaces.length; i++) {
    watchAll(globalThis[namespaces[i]], namespaces[i]);
    watch(globalThis, namespaces[i], namespaces[i]);
  }
  for (let i = 0; i < functions.length; i++) watch(globalThis, functions[i], functions[i]);
  for (const label in nameless) watchAll(nameless[label], label);
  const names = NAMES;
  for (let i = 0; i < names.length; i++) plant(Object.prototype, names[i], "Object.prototype");
  for (let i = 0; i < 40; i++) plant(Array.prototype, `${i}`, "Array.prototype");
  for (let i = 0; i < 10; i++) plant(Object.prototype, `${i}`, "Object.prototype"); // behind strings and the arguments of a call
}
poison();

export async function spied(steps) {
  reached = "";
  spying = true;
  // The steps get a function by which they give what they come to, since what a promise is resolved with is asked for
  // its "then".
  let value;
  try {
    const pending = steps((result) => { value = result; });
    if (pending !== undefined) await pending; // an await asks promises for their constructor
  } catch (error) {
    spying = false;
    value = `${error}`;
  }
  spying = false;
  return value === undefined ? reached : reached === "" ? value : [value, reached];
}

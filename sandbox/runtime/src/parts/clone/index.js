// Structured cloning (HTML, 2.7, https://html.spec.whatwg.org/#safe-passing-of-structured-data) over the engine's own
// serializer. What an ordinary object is copied as is the engine's work; platform objects are copied by what other parts
// have registered, all others are refused: their prototypes are marked by finish().

import { makePlatform } from "./platform.js";

export default function clone(core) {
  const { checkGlobal, defineProperty, getPrototypeOf, hasOwn, makeException, native, need, ownKeys, requireArguments, stackOf, toDictionary, toSequence } = core;
  const { copierOf, isException, watchNames } = need("exception");
  const { isArray } = Array;
  const SafeMap = Map;
  const SafeSet = Set;

  const cloners = [];

  /**
   * Lets the objects of a class be cloned or transferred. is(object) is the brand check, by default the prototype chain;
   * clone(object) returns a copy; transfer(object) returns the twin that takes its place, and throws a DataCloneError for
   * an object that was transferred before: canTransfer(object) says so beforehand.
   */
  function register(Class, { is, clone, transfer, canTransfer }) {
    const { prototype } = Class;
    is ??= (object) => {
      for (let p = getPrototypeOf(object); p !== null; p = getPrototypeOf(p)) if (p === prototype) return true;
      return false;
    };
    cloners[cloners.length] = { is, clone, transfer, canTransfer };
  }

  function clonerOf(object) {
    for (let i = 0; i < cloners.length; i++) if (cloners[i].is(object)) return cloners[i];
    return learn(object) ? clonerOf(object) : undefined;
  }

  const nameOf = (object) => core.getOwnPropertyDescriptor(getPrototypeOf(object) ?? object, core.toStringTag)?.value ?? "Object";
  function fail(message) {
    throw makeException(message, "DataCloneError");
  }

  // 2.7.7 StructuredSerializeWithTransfer, step 2: what is in the list.
  function sortTransfer(list) {
    const seen = new SafeSet();
    const buffers = [];
    const objects = [];
    for (let i = 0; i < list.length; i++) {
      const object = list[i];
      if (seen.has(object)) fail("The transfer list holds an object twice.");
      seen.add(object);
      if (native.classOf(object) === "ArrayBuffer") {
        if (core.bufferDetached(object)) fail("An ArrayBuffer is detached and could not be cloned.");
        buffers[buffers.length] = object;
        continue;
      }
      const cloner = native.classOf(object) === "Object" ? clonerOf(object) : undefined;
      if (cloner?.transfer === undefined) fail("A value of the transfer list is not transferable.");
      if (cloner.canTransfer?.(object) === false) fail("An object of the transfer list is locked, or was transferred before.");
      objects[objects.length] = { object, cloner };
    }
    return { buffers, objects };
  }

  /** Clones value, moving the objects of the list; returns {value, twins}, the twins in the order of the list. */
  function cloneWithTransfer(value, list) {
    const { buffers, objects } = sortTransfer(list);
    const moved = new SafeMap(); // object to its twin, undefined before the move
    for (let i = 0; i < objects.length; i++) moved.set(objects[i].object, undefined);
    const cloneHost = (object, writing) => {
      if (moved.has(object)) return writing ? undefined : moved.get(object);
      const cloner = clonerOf(object);
      if (cloner?.clone === undefined) fail(`#<${nameOf(object)}> could not be cloned.`);
      return cloner.clone(object);
    };
    const transfer = () => {
      for (let i = 0; i < objects.length; i++) {
        const { object, cloner } = objects[i];
        if (cloner.canTransfer?.(object) === false) fail("An object of the transfer list is locked, or was transferred before.");
        moved.set(object, cloner.transfer(object));
      }
    };
    const copy = withExceptions(() => native.clone(value, buffers, cloneHost, transfer, fail));
    const twins = [];
    for (let i = 0; i < objects.length; i++) twins[i] = moved.get(objects[i].object);
    return { __proto__: null, value: copy, twins };
  }

  // DOMExceptions are errors of the engine, and its serializer takes them for such. It reads the name of each error first:
  // then the error's stack gives way to a mark, by which the copy is found and replaced.
  let marks;
  function withExceptions(run) {
    const met = [];
    const outer = marks;
    marks = new SafeMap();
    const own = marks;
    watchNames((error) => {
      const mark = `\0DOMException ${met.length}`;
      const copy = copierOf(error);
      const before = core.getOwnPropertyDescriptor(error, "stack");
      if (before === undefined || !before.configurable || marks !== own) return;
      if (!Reflect.defineProperty(error, "stack", { __proto__: null, value: mark, writable: true, enumerable: false, configurable: true })) return;
      own.set(mark, { copy, made: undefined });
      met[met.length] = { error, before };
    });
    try {
      const copy = run();
      return met.length === 0 ? copy : replaceMarks(copy, own);
    } finally {
      marks = outer;
      if (outer === undefined) watchNames(undefined);
      for (let i = 0; i < met.length; i++) defineProperty(met[i].error, "stack", met[i].before);
    }
  }

  // Walks a fresh copy, which has data properties only, and puts the copies of DOMExceptions in their places.
  function replaceMarks(root, own) {
    const seen = new SafeSet();
    const open = [];
    const visit = (value) => {
      if (typeof value !== "object" || value === null) return value;
      const kind = native.classOf(value);
      if (kind === "Error") {
        const mark = own.get(stackOf(value));
        if (mark !== undefined) return (mark.made ??= mark.copy());
      }
      if (!seen.has(value)) {
        seen.add(value);
        if (kind === "Map" || kind === "Set" || kind === "Error" || kind === "Array" || (kind === "Object" && clonerOf(value) === undefined)) {
          open[open.length] = { value, kind };
        }
      }
      return value;
    };
    const result = visit(root);
    while (open.length > 0) {
      const { value, kind } = open.pop();
      if (kind === "Map") visitMap(value, visit);
      else if (kind === "Set") visitSet(value, visit);
      else visitProperties(value, kind === "Error" ? ["cause"] : ownKeys(value), visit);
    }
    return result;
  }

  function visitProperties(object, keys, visit) {
    for (let i = 0; i < keys.length; i++) {
      if (!hasOwn(object, keys[i]) || (keys[i] === "length" && isArray(object))) continue;
      const before = object[keys[i]];
      const after = visit(before);
      if (after !== before) object[keys[i]] = after;
    }
  }

  function visitMap(map, visit) {
    const entries = [...map];
    map.clear();
    for (const [key, value] of entries) map.set(visit(key), visit(value));
  }

  function visitSet(set, visit) {
    const values = [...set];
    set.clear();
    for (const value of values) set.add(visit(value));
  }

  const learn = makePlatform(core, { register, cloneWithTransfer });

  const toObject = (value, what) => {
    if (!core.isObject(value)) throw new core.SafeTypeError(`${what} holds a value that is not an object.`);
    return value;
  };
  const toTransfer = (value, what) => toSequence(value, toObject, what);
  const options = [["transfer", toTransfer]];

  return {
    __proto__: null,
    register,
    cloneWithTransfer,
    toTransfer,
    transferOf,

    structuredClone(value, options = undefined) {
      checkGlobal(this);
      requireArguments("structuredClone", arguments.length, 1);
      const list = transferOf(options);
      if (isException(value) && list.length === 0) return copierOf(value)();
      return cloneWithTransfer(value, list).value;
    },
  };

  // Converts a StructuredSerializeOptions dictionary to its list.
  function transferOf(value) {
    return toDictionary(value, options, "The options").transfer ?? [];
  }
}

// Structured cloning (HTML, 2.7, https://html.spec.whatwg.org/#safe-passing-of-structured-data) over the engine's own
// serializer. What an ordinary object is copied as is the engine's work; platform objects are copied by what other parts
// have registered, all others are refused: their prototypes are marked by finish().

import { makePlatform } from "./platform.js";

export default function clone(core) {
  const { checkGlobal, defineProperty, getPrototypeOf, hasOwn, makeException, native, need, ownKeys, requireArguments, stackOf, toDictionary, toSequence } = core;
  const { copierOf, isException, watchNames } = need("exception");
  const {
    isArray, list, mapClear, mapEntries, mapGet, mapHas, mapIteratorNext, mapSet, push, SafeMap, setAdd, setClear, setIteratorNext, setValues,
  } = core;

  const cloners = list();

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
    push(cloners, { __proto__: null, is, clone, transfer, canTransfer });
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
  function sortTransfer(items) {
    const seen = new SafeMap();
    const buffers = list();
    const objects = list();
    for (let i = 0; i < items.length; i++) {
      const object = items[i];
      if (mapHas(seen, object)) fail("The transfer list holds an object twice.");
      mapSet(seen, object, true);
      if (native.classOf(object) === "ArrayBuffer") {
        if (core.bufferDetached(object)) fail("An ArrayBuffer is detached and could not be cloned.");
        push(buffers, object);
        continue;
      }
      const cloner = native.classOf(object) === "Object" ? clonerOf(object) : undefined;
      if (cloner?.transfer === undefined) fail("A value of the transfer list is not transferable.");
      if (cloner.canTransfer?.(object) === false) fail("An object of the transfer list is locked, or was transferred before.");
      push(objects, { __proto__: null, object, cloner });
    }
    return { buffers, objects };
  }

  /** Clones value, moving the items; returns {value, twins}, the twins of those that are no buffers in their order. */
  function cloneWithTransfer(value, items) {
    const { buffers, objects } = sortTransfer(items);
    const moved = new SafeMap(); // object to its twin, undefined before the move
    for (let i = 0; i < objects.length; i++) mapSet(moved, objects[i].object, undefined);
    const cloneHost = (object, writing) => {
      if (mapHas(moved, object)) return writing ? undefined : mapGet(moved, object);
      const cloner = clonerOf(object);
      if (cloner?.clone === undefined) fail(`#<${nameOf(object)}> could not be cloned.`);
      return cloner.clone(object);
    };
    const transfer = () => {
      for (let i = 0; i < objects.length; i++) {
        const { object, cloner } = objects[i];
        if (cloner.canTransfer?.(object) === false) fail("An object of the transfer list is locked, or was transferred before.");
        mapSet(moved, object, cloner.transfer(object));
      }
    };
    const copy = withExceptions(() => native.clone(value, buffers, cloneHost, transfer, fail));
    const twins = list();
    for (let i = 0; i < objects.length; i++) push(twins, mapGet(moved, objects[i].object));
    return { __proto__: null, value: copy, twins };
  }

  // DOMExceptions are errors of the engine, and its serializer takes them for such. It reads the name of each error first:
  // then the error's stack gives way to a mark, by which the copy is found and replaced.
  let marks;
  function withExceptions(run) {
    const met = list();
    const outer = marks;
    marks = new SafeMap();
    const own = marks;
    watchNames((error) => {
      const mark = `\0DOMException ${met.length}`;
      const copy = copierOf(error);
      const before = core.getOwnPropertyDescriptor(error, "stack");
      if (before === undefined || !before.configurable || marks !== own) return;
      if (!defineProperty(error, "stack", { __proto__: null, value: mark, writable: true, enumerable: false, configurable: true })) return;
      mapSet(own, mark, { __proto__: null, copy, made: undefined });
      push(met, { __proto__: null, error, before });
    });
    try {
      const copy = run();
      return met.length === 0 ? copy : replaceMarks(copy, own);
    } finally {
      marks = outer;
      if (outer === undefined) watchNames(undefined);
      for (let i = 0; i < met.length; i++) defineProperty(met[i].error, "stack", core.setPrototypeOf(met[i].before, null));
    }
  }

  // Walks a fresh copy, which has data properties only, and puts the copies of DOMExceptions in their places.
  function replaceMarks(root, own) {
    const seen = new SafeMap();
    const open = list();
    let next = 0; // in open
    const visit = (value) => {
      if (typeof value !== "object" || value === null) return value;
      const kind = native.classOf(value);
      if (kind === "Error") {
        const mark = mapGet(own, stackOf(value));
        if (mark !== undefined) return (mark.made ??= mark.copy());
      }
      if (!mapHas(seen, value)) {
        mapSet(seen, value, true);
        if (kind === "Map" || kind === "Set" || kind === "Error" || kind === "Array" || (kind === "Object" && clonerOf(value) === undefined)) {
          push(open, { __proto__: null, value, kind });
        }
      }
      return value;
    };
    const result = visit(root);
    while (next < open.length) {
      const { value, kind } = open[next++];
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
    const entries = list();
    const iterator = mapEntries(map);
    for (let step = mapIteratorNext(iterator); !step.done; step = mapIteratorNext(iterator)) push(entries, step.value);
    mapClear(map);
    for (let i = 0; i < entries.length; i++) mapSet(map, visit(entries[i][0]), visit(entries[i][1]));
  }

  function visitSet(set, visit) {
    const values = list();
    const iterator = setValues(set);
    for (let step = setIteratorNext(iterator); !step.done; step = setIteratorNext(iterator)) push(values, step.value);
    setClear(set);
    for (let i = 0; i < values.length; i++) setAdd(set, visit(values[i]));
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
      const items = transferOf(options);
      if (isException(value) && items.length === 0) return copierOf(value)();
      return cloneWithTransfer(value, items).value;
    },
  };

  // Converts a StructuredSerializeOptions dictionary to its list.
  function transferOf(value) {
    return toDictionary(value, options, "The options").transfer ?? [];
  }
}

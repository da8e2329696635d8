// What the host of a retained execution pulls from: iterators, and streams, by their next, return and throw. The engine asks
// only where a value that crosses may keep the program.

export default function handles(core) {
  const { apply, asyncIterator, isObject, loaded, native, SafeTypeError } = core;

  function isStream(object) {
    try {
      loaded("streams").readableOf(object);
      return true;
    } catch {
      return false;
    }
  }

  const generators = { __proto__: null, Generator: true, MapIterator: true, SetIterator: true };

  /** Gives [kind, iterator] of an object that can be pulled from, undefined for another. It may run the program's code. */
  function open(object) {
    const method = object[asyncIterator];
    if (method === undefined || method === null) return native.classOf(object) in generators ? ["iterator", object] : undefined;
    if (typeof method !== "function") throw new SafeTypeError("[Symbol.asyncIterator] is not a function");
    const kind = isStream(object) ? "stream" : "iterator";
    const iterator = apply(method, object, []);
    if (!isObject(iterator)) throw new SafeTypeError("[Symbol.asyncIterator]() is not an object");
    return [kind, iterator];
  }

  /** Calls a method of an iterator, be it one for await or not, and returns a promise of {done, value}. */
  async function pull(iterator, name, args) {
    const method = iterator[name];
    if (method === undefined || method === null) {
      if (name === "return") return { __proto__: null, done: true, value: args[0] };
      throw new SafeTypeError(`the iterator has no method ${name}`);
    }
    const result = await apply(method, iterator, args);
    if (!isObject(result)) throw new SafeTypeError(`${name} of the iterator gave no object`);
    return { __proto__: null, done: !!result.done, value: await result.value };
  }

  return { __proto__: null, open, pull };
}

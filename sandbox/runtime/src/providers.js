// Tool providers as globals. A provider with `all` answers every name; one with a list has exactly those.

import {
  define,
  freeze,
  getOwnPropertyDescriptor,
  global,
  hasOwn,
  promiseReject,
  SafeWeakMap,
  stringToWellFormed,
  weakMapGet,
  weakMapSet,
} from "./primordials.js";

// What is no tool unless it is listed: names that the language itself looks for on any object, and names that the
// protocol does not carry (empty, over 256 units, or with a lone surrogate).
const noTool = (key) =>
  typeof key === "symbol" || key === "then" || key === "toJSON" ||
  key === "" || key.length > 256 || stringToWellFormed(key) !== key;

/** Returns defineProvider(spec) and nameOf(object), which knows the providers that console shows by name. */
export function makeProviders(native) {
  const names = new SafeWeakMap();

  // Arrow functions: not constructors. Rest parameter: length 0.
  function makeTool(provider, path) {
    const tool = (...args) => {
      try {
        return native.call(provider, path, args);
      } catch (error) {
        return promiseReject(error);
      }
    };
    return defineName(tool, path[path.length - 1]);
  }

  // Every name is a tool, made when it is read: a provider may have any number of them. The guest may put its own
  // values over them; they are its own only.
  function makeOpen(provider) {
    const handler = {
      __proto__: null,
      get(target, key) {
        if (hasOwn(target, key)) return target[key];
        return noTool(key) ? undefined : makeTool(provider, [key]);
      },
    };
    return new Proxy({ __proto__: null }, freeze(handler));
  }

  function makeListed(provider, paths) {
    const root = { __proto__: null };
    for (let i = 0; i < paths.length; i++) place(root, provider, paths[i]);
    return root;
  }

  function place(root, provider, path) {
    let node = root;
    const last = path.length - 1;
    for (let i = 0; i < last; i++) node = child(node, path[i]) ?? attach(node, path[i], { __proto__: null });
    const before = child(node, path[last]);
    const tool = attach(node, path[last], makeTool(provider, path));
    if (before !== undefined) move(before, tool); // ["users","get"] was listed before ["users"]
  }

  function defineProvider({ name, all, paths }) {
    const provider = all ? makeOpen(name) : makeListed(name, paths);
    weakMapSet(names, provider, name);
    define(global, name, provider);
  }

  return { defineProvider, nameOf: (object) => weakMapGet(names, object) };
}

function defineName(tool, value) {
  define(tool, "name", value, false);
  return tool;
}

// Tools hold only enumerable children; `name` and `length` of a function are not.
function child(node, key) {
  const found = getOwnPropertyDescriptor(node, key);
  return found?.enumerable ? found.value : undefined;
}

function attach(node, key, value) {
  define(node, key, value);
  return value;
}

function move(from, to) {
  for (const key in from) if (hasOwn(from, key)) define(to, key, from[key]);
}

// Providers are functions of the host by name. What a program may reach is what is own and enumerable here, never what a
// prototype has.

import { refuse } from "./errors.js";
import { entriesOf, hasOwn } from "./values/walk.js";

const maxPath = 16;

/** The providers of an execute request: a function answers for every name, an object lists its tools. */
export function wireProviders(providers) {
  return entriesOf(providers).map(([name, tools]) => {
    const listed = [...paths(tools, [name])];
    return { name, tools: typeof tools === "function" ? "*" : listed };
  });
}

// paths gives those of all tools in an object, which itself is at path.
function* paths(tools, path) {
  const place = path.join(".");
  if (Object(tools) !== tools) refuse(`${place} is neither a function nor an object of functions`);
  if (path.length > maxPath + 1) refuse(`${place} is nested too deep`);
  for (const [key, tool] of entriesOf(tools)) {
    if (typeof tool === "function") yield path.length === 1 ? key : [...path.slice(1), key];
    yield* paths(tool, [...path, key]);
  }
}

/** The function that a tool.call is for, bound to its context. */
export function toolOf(providers, provider, path, context) {
  const tools = own(providers, provider);
  if (typeof tools === "function") return (...args) => tools(path, args, context);
  const tool = path.reduce(own, tools);
  if (typeof tool !== "function") refuse(`there is no tool ${[provider, ...path].join(".")}`);
  return (...args) => tool.apply(context, args);
}

const own = (object, key) => (hasOwn(Object(object), key) ? object[key] : undefined);

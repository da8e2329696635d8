// Providers are functions of the host by name. What a program may reach is what is own and enumerable here, never what a
// prototype has.

const maxPath = 16;
const isTree = (value) => typeof value === "function" || (value !== null && typeof value === "object");

/** The providers of an execute request: a function answers for every name, an object lists its tools. */
export function wireProviders(providers) {
  return Object.entries(providers).map(([name, tools]) => {
    if (!isTree(tools)) throw new TypeError(`provider ${name} is neither an object of functions nor a function`);
    return { name, tools: typeof tools === "function" ? "*" : [...paths(name, tools, [])] };
  });
}

function* paths(name, tools, path) {
  if (path.length > maxPath) throw new TypeError(`the tools of provider ${name} are nested too deep`);
  for (const [key, tool] of Object.entries(tools)) {
    const here = [...path, key];
    if (typeof tool === "function") yield here.length === 1 ? key : here;
    else if (!isTree(tool)) throw new TypeError(`tool ${[name, ...here].join(".")} is no function`);
    yield* paths(name, tool, here);
  }
}

/** The function that a tool.call is for, bound to its context. */
export function toolOf(providers, provider, path, context) {
  let tool = own(providers, provider);
  if (typeof tool === "function") return (...args) => tool(path, args, context);
  for (const name of path) tool = own(tool, name);
  if (typeof tool !== "function") throw new TypeError(`there is no tool ${[provider, ...path].join(".")}`);
  return (...args) => tool.apply(context, args);
}

const own = (object, key) => (isTree(object) && Object.hasOwn(object, key) ? object[key] : undefined);

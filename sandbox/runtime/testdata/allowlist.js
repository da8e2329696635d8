// A line is: path, attributes (w writable, e enumerable, c configurable; or what accessors there are), and the value: a
// primitive, `function name length`, `object` with its class string, or `= path` for what was listed before.
const lines = [];
const seen = new Map();
const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

const nameOf = (key) => (typeof key === "symbol" ? `[${key.description}]` : /^[\w$]+$/.test(key) ? key : JSON.stringify(key));

function shown(value) {
  if (typeof value === "function") return `function ${JSON.stringify(value.name)} ${value.length}`;
  if (typeof value === "object" && value !== null) return `object ${Object.prototype.toString.call(value).slice(8, -1)}`;
  return typeof value === "string" ? JSON.stringify(value) : `${typeof value} ${Object.is(value, -0) ? "-0" : String(value)}`;
}

// Functions that have only what every function has need no lines of their own.
const isPlain = (value) =>
  typeof value === "function" && Reflect.ownKeys(value).every((key) => key === "name" || key === "length") && Object.getPrototypeOf(value) === Function.prototype;

function attributes(d) {
  const rest = (d.enumerable ? "e" : "-") + (d.configurable ? "c" : "-");
  if ("value" in d) return (d.writable ? "w" : "-") + rest;
  return [d.get && "get", d.set && "set"].filter(Boolean).join("+") + rest.replace(/^/, " ");
}

function property(path, d) {
  const functions = "value" in d ? [d.value] : [d.get, d.set].filter(Boolean);
  const known = "value" in d && isObject(d.value) ? seen.get(d.value) : undefined;
  lines.push(`${path}  ${attributes(d)}  ${known === undefined ? functions.map(shown).join(" ") : `= ${known}`}`);
  if (known !== undefined) return;
  for (const value of functions) if (isObject(value) && !isPlain(value)) found(path, value);
}

// Breadth first, so that what has several paths goes by the shortest.
const queue = [];
function found(path, object) {
  if (seen.has(object)) return;
  seen.set(object, path);
  queue.push([path, object]);
}

function visit(path, object) {
  found(path, object);
  while (queue.length > 0) walk(...queue.shift());
}

function walk(path, object) {
  const at = path === "globalThis" ? "" : `${path}.`;
  const order = (a, b) => (nameOf(a) < nameOf(b) ? -1 : 1);
  const standard = typeof object === "function" ? ["name", "length"] : [];
  for (const key of Reflect.ownKeys(object).sort(order)) {
    if (!standard.includes(key)) property(at + nameOf(key), Object.getOwnPropertyDescriptor(object, key));
  }
  const parent = Object.getPrototypeOf(object);
  if (parent === null || parent === Object.prototype || parent === Function.prototype) return;
  lines.push(`${at}[[Prototype]]  ${seen.has(parent) ? `= ${seen.get(parent)}` : shown(parent)}`);
  found(`${at}[[Prototype]]`, parent);
}

seen.set(Object.prototype, "Object.prototype");
seen.set(Function.prototype, "Function.prototype");
visit("globalThis", globalThis);
for (const [path, object] of [["Object.prototype", Object.prototype], ["Function.prototype", Function.prototype]]) {
  seen.delete(object);
  visit(path, object);
}
// What only syntax and calls reach.
async function* generator() {}
visit("%GeneratorFunction.prototype%", Object.getPrototypeOf(function* () {}));
visit("%AsyncGeneratorFunction.prototype%", Object.getPrototypeOf(generator));
visit("%AsyncFunction.prototype%", Object.getPrototypeOf(async () => {}));
visit("%ArrayIteratorPrototype%", Object.getPrototypeOf([][Symbol.iterator]()));
visit("%MapIteratorPrototype%", Object.getPrototypeOf(new Map()[Symbol.iterator]()));
visit("%SetIteratorPrototype%", Object.getPrototypeOf(new Set()[Symbol.iterator]()));
visit("%StringIteratorPrototype%", Object.getPrototypeOf(""[Symbol.iterator]()));
visit("%RegExpStringIteratorPrototype%", Object.getPrototypeOf("a".matchAll(/a/g)));
visit("%IteratorHelperPrototype%", Object.getPrototypeOf([].values().map(String)));
visit("%WrapForValidIteratorPrototype%", Object.getPrototypeOf(Iterator.from({ next() {} })));
return lines.sort().join("\n") + "\n";

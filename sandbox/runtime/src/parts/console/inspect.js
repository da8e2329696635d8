// Values as text for the console: strings raw at the top and quoted inside, objects as literals. It runs no code of the
// guest (getters show as [Getter], proxies are not asked) and its output is bounded in depth, items and length.

import { kinds } from "./kinds.js";
import { layout } from "./layout.js";
import {
  getOwnPropertyDescriptor,
  hasOwn,
  list,
  mapGet,
  mapSet,
  mapSize,
  push,
  SafeMap,
  setPrototypeOf,
  stringSlice,
  symbolToString,
} from "../../primordials.js";
import { keyText, quote } from "./quote.js";
import { className, shownKeys, tagOf } from "../../reflect.js";

const maxDepth = 5; // objects inside objects
const maxString = 10_000; // UTF-16 units of a string inside an object
const maxTotal = 100_000; // UTF-16 units of a whole value, about

/** Inspects one argument of a console call: a string stands for itself. */
export function inspectArgument(native, settings, value, depth = maxDepth) {
  if (typeof value === "string") return value;
  return new Inspector(native, settings, depth).show(value, 0, 0);
}

/** Inspects a value as it would stand inside an object: strings are quoted. */
export function inspectNested(native, settings, value, depth = maxDepth) {
  return new Inspector(native, settings, depth).show(value, 0, 0);
}

/** One inspection. The methods below are what kinds.js builds on; level counts objects, indent counts columns. */
class Inspector {
  constructor(native, settings, depth) {
    this.native = native;
    this.settings = settings;
    this.depth = depth;
    this.left = maxTotal;
    this.open = list(); // objects being shown, outermost first
    this.circular = undefined; // of them, those met again: object to number
    this.errorInFull = false; // the next object is an error to be shown with its stack
  }

  show(value, level, indent) {
    const text = this.isObject(value) ? this.object(value, level, indent) : this.primitive(value);
    this.left -= text.length;
    return text;
  }

  isObject(value) {
    return typeof value === "function" || (typeof value === "object" && value !== null);
  }

  primitive(value) {
    switch (typeof value) {
      case "string":
        return this.string(value);
      case "number":
        return value === 0 && 1 / value < 0 ? "-0" : `${value}`;
      case "bigint":
        return `${value}n`;
      case "symbol":
        return symbolToString(value);
      default:
        return `${value}`;
    }
  }

  string(value) {
    if (value.length <= maxString) return quote(value);
    return `${quote(stringSlice(value, 0, maxString))}... ${value.length - maxString} more characters`;
  }

  object(value, level, indent) {
    for (let i = 0; i < this.open.length; i++) {
      if (this.open[i] === value) return `[Circular *${this.circularNumber(value)}]`;
    }
    const provider = this.settings.nameOf(value);
    if (provider !== undefined) return `[Provider: ${provider}]`;
    push(this.open, value);
    const text = this.body(value, level, indent);
    this.open.length--;
    const number = this.circular && mapGet(this.circular, value);
    return number === undefined ? text : `<ref *${number}> ${text}`;
  }

  circularNumber(value) {
    this.circular ??= new SafeMap();
    const known = mapGet(this.circular, value);
    if (known !== undefined) return known;
    const number = mapSize(this.circular) + 1;
    mapSet(this.circular, value, number);
    return number;
  }

  body(value, level, indent) {
    const kind = this.native.classOf(value);
    const show = kinds[kind] ?? (typeof value === "function" ? kinds.Function : kinds.Object);
    return show(this, value, { __proto__: null, kind, level, indent });
  }

  /** True where an object is too deep or too late to be opened. */
  isTooDeep(at) {
    return at.level > this.depth || this.left <= 0;
  }

  /** The text before the braces: class name, size, tag. fallback is the name when there is no class. */
  head(value, fallback, size, plain) {
    const name = className(this.native, value);
    const tag = tagOf(this.native, value);
    const count = size === undefined ? "" : `(${size})`;
    if (name === null) return `[${fallback}${count}: null prototype] ${tag !== "" && tag !== fallback ? `[${tag}] ` : ""}`;
    const shown = name === "" ? fallback : name;
    const suffix = tag !== "" && tag !== shown ? `[${tag}] ` : "";
    if (suffix === "" && shown === plain) return "";
    return `${shown}${count} ${suffix}`;
  }

  /** Appends `key: value` for each enumerable own property. named leaves array indexes out, covered are keys to leave out. */
  properties(parts, value, at, named, covered) {
    const keys = shownKeys(value, named);
    for (let i = 0; i < keys.length; i++) {
      if (covered?.[keys[i]]) continue;
      if (this.left <= 0) {
        push(parts, `... ${keys.length - i} more ${keys.length - i === 1 ? "property" : "properties"}`);
        return;
      }
      push(parts, this.property(value, keys[i], at));
    }
  }

  property(object, key, at, label = `${keyText(key)}: `) {
    this.left -= label.length;
    let found;
    try {
      found = getOwnPropertyDescriptor(object, key);
    } catch {
      return `${label}<uninitialized>`;
    }
    if (!hasOwn(found, "value")) return label + accessorText(found);
    return label + this.show(found.value, at.level + 1, at.indent + 2);
  }

  /** Lays out the parts of value between braces or brackets. */
  wrap(head, open, parts, close, at, isList) {
    return layout(head, open, parts, close, at.indent, isList);
  }
}

// Without Object.prototype behind it no setter of the guest can catch the fields, and with them the host's functions.
setPrototypeOf(Inspector.prototype, null);

function accessorText({ get, set }) {
  if (get === undefined) return "[Setter]";
  return set === undefined ? "[Getter]" : "[Getter/Setter]";
}

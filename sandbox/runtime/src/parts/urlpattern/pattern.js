// Patterns of one component (URL Pattern Standard, https://urlpattern.spec.whatwg.org/#patterns, 2): tokens, parts, the
// regular expression and the normal form of a pattern.

import {
  fromCodePoint, list, push, regexpExec, SafeRegExp, SafeTypeError, stringCharAt as charAt, stringCodePointAt, stringEndsWith,
  stringIncludes, stringSlice,
} from "../../primordials.js";

const nameStart = /[$_\p{ID_Start}]/u;
const namePart = /[$_\u200c\u200d\p{ID_Continue}]/u;
const isNameStart = (point) => regexpExec(nameStart, point) !== null;
const isNamePart = (point) => regexpExec(namePart, point) !== null;
const escaped = (text, special) => {
  let result = "";
  for (let i = 0; i < text.length; i++) result += (stringIncludes(special, charAt(text, i)) ? "\\" : "") + charAt(text, i);
  return result;
};
const escapeRegexp = (text) => escaped(text, ".+*?^${}()[]|/\\");
/** Escape a pattern string (2.3). */
export const escapePattern = (text) => escaped(text, "+*?:{}()\\");
const isASCII = (unit) => unit < "\u0080";

/** Tokenize (2.1): a list of {type, index, value}. Where lenient, what is wrong becomes a token of type "invalid". */
export function tokenize(input, lenient) {
  const tokens = list();
  let i = 0;
  const add = (type, end, from = i, to = end) => {
    push(tokens, { __proto__: null, type, index: i, value: stringSlice(input, from, to) });
    i = end;
  };
  const refuse = (end, from, message) => {
    if (!lenient) throw new SafeTypeError(`Invalid pattern: ${message} at ${i}.`);
    add("invalid", end, from, end);
  };
  while (i < input.length) {
    const unit = charAt(input, i);
    const size = stringCodePointAt(input, i) > 0xffff ? 2 : 1;
    if (unit === "*") add("asterisk", i + 1);
    else if (unit === "+" || unit === "?") add("modifier", i + 1);
    else if (unit === "{") add("open", i + 1);
    else if (unit === "}") add("close", i + 1);
    else if (unit === "\\") {
      if (i === input.length - 1) refuse(i + 1, i, "nothing is escaped");
      else add("escaped", i + 1 + (stringCodePointAt(input, i + 1) > 0xffff ? 2 : 1), i + 1);
    } else if (unit === ":") {
      let end = i + 1;
      while (end < input.length) {
        const point = fromCodePoint(stringCodePointAt(input, end));
        if (!(end === i + 1 ? isNameStart : isNamePart)(point)) break;
        end += point.length;
      }
      if (end === i + 1) refuse(end, i, "a name is missing");
      else add("name", end, i + 1);
    } else if (unit === "(") {
      const end = groupEnd(input, i);
      if (end < 0 || end === i + 2) refuse(i + 1, i, "a regular expression is wrong");
      else add("regexp", end, i + 1, end - 1);
    } else add("char", i + size);
  }
  add("end", i);
  return tokens;
}

// The index behind the group of a regular expression that begins at start; -1 if it is not a valid one.
function groupEnd(input, start) {
  let depth = 1;
  for (let i = start + 1; i < input.length; i++) {
    const unit = charAt(input, i);
    if (!isASCII(unit) || (i === start + 1 && unit === "?")) return -1;
    if (unit === "\\") {
      i++;
      if (i === input.length || !isASCII(charAt(input, i))) return -1;
    } else if (unit === ")") {
      if (--depth === 0) return i + 1;
    } else if (unit === "(") {
      depth++;
      if (charAt(input, i + 1) !== "?") return -1;
    }
  }
  return -1;
}

const full = ".*";
const segment = (options) => `[^${escapeRegexp(options.delimiter)}]+?`;

// Parse a pattern string (2.2): a list of {type, name, prefix, value, suffix, modifier}.
function parse(input, encode, options) {
  const tokens = tokenize(input, false);
  const parts = list();
  const names = { __proto__: null };
  const wildcard = segment(options);
  let i = 0;
  let pending = "";
  let number = 0;
  const take = (type) => (tokens[i].type === type ? tokens[i++] : undefined);
  const takeModifier = () => (take("modifier") ?? take("asterisk"))?.value ?? "";
  const takeMatcher = (name) => take("regexp") ?? (name === undefined ? take("asterisk") : undefined);
  const fixed = (value, modifier) => push(parts, { __proto__: null, type: "fixed", name: "", prefix: "", value: encode(value), suffix: "", modifier });
  function require(type) {
    if (take(type) === undefined) throw new SafeTypeError(`Invalid pattern: unexpected '${tokens[i].value}' at ${tokens[i].index}.`);
  }
  function flush() {
    if (pending !== "") fixed(pending, "");
    pending = "";
  }
  function takeText() {
    let text = "";
    for (let token; (token = take("char") ?? take("escaped")) !== undefined;) text += token.value;
    return text;
  }
  function addPart(prefix, name, matcher, suffix, modifier) {
    if (name === undefined && matcher === undefined) {
      if (modifier === "") {
        pending += prefix;
        return;
      }
      flush();
      if (prefix !== "") fixed(prefix, modifier);
      return;
    }
    flush();
    let value = matcher === undefined ? wildcard : matcher.type === "asterisk" ? full : matcher.value;
    let type = "regexp";
    if (value === wildcard) type = "segment";
    else if (value === full) type = "full";
    if (type !== "regexp") value = "";
    const key = name !== undefined ? name.value : `${number++}`;
    if (key in names) throw new SafeTypeError(`Invalid pattern: the name '${key}' is there twice.`);
    names[key] = true;
    push(parts, { __proto__: null, type, name: key, prefix: encode(prefix), value, suffix: encode(suffix), modifier });
  }
  while (i < tokens.length) {
    const char = take("char");
    const name = take("name");
    const matcher = takeMatcher(name);
    if (name !== undefined || matcher !== undefined) {
      let prefix = char?.value ?? "";
      if (prefix !== "" && prefix !== options.prefix) {
        pending += prefix;
        prefix = "";
      }
      flush();
      addPart(prefix, name, matcher, "", takeModifier());
      continue;
    }
    const text = char ?? take("escaped");
    if (text !== undefined) {
      pending += text.value;
      continue;
    }
    if (take("open") !== undefined) {
      const prefix = takeText();
      const inner = take("name");
      const innerMatcher = takeMatcher(inner);
      const suffix = takeText();
      require("close");
      addPart(prefix, inner, innerMatcher, suffix, takeModifier());
      continue;
    }
    flush();
    require("end");
  }
  return parts;
}

const matcherOf = (part, options) => (part.type === "segment" ? segment(options) : part.type === "full" ? full : part.value);

// Generate a regular expression and name list (2.3).
function toRegexp(parts, options) {
  let text = "^";
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    const { modifier } = part;
    if (part.type === "fixed") {
      text += modifier === "" ? escapeRegexp(part.value) : `(?:${escapeRegexp(part.value)})${modifier}`;
      continue;
    }
    const matcher = matcherOf(part, options);
    const once = modifier === "" || modifier === "?";
    const prefix = escapeRegexp(part.prefix);
    const suffix = escapeRegexp(part.suffix);
    if (prefix === "" && suffix === "") text += once ? `(${matcher})${modifier}` : `((?:${matcher})${modifier})`;
    else if (once) text += `(?:${prefix}(${matcher})${suffix})${modifier}`;
    else text += `(?:${prefix}((?:${matcher})(?:${suffix}${prefix}(?:${matcher}))*)${suffix})${modifier === "*" ? "?" : ""}`;
  }
  try {
    return new SafeRegExp(`${text}$`, options.ignoreCase ? "vi" : "v");
  } catch (error) {
    throw new SafeTypeError(`Invalid pattern: ${error.message}`);
  }
}

const isCustom = (part) => part.name !== "" && !(charAt(part.name, 0) >= "0" && charAt(part.name, 0) <= "9");
const first = (text) => fromCodePoint(stringCodePointAt(text, 0));

// Generate a pattern string (2.3).
function toPattern(parts, options) {
  let text = "";
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    const before = parts[i - 1];
    const after = parts[i + 1];
    if (part.type === "fixed") {
      text += part.modifier === "" ? escapePattern(part.value) : `{${escapePattern(part.value)}}${part.modifier}`;
      continue;
    }
    const custom = isCustom(part);
    let grouped = part.suffix !== "" || (part.prefix !== "" && part.prefix !== options.prefix);
    if (!grouped && custom && part.type === "segment" && part.modifier === "" && after !== undefined && after.prefix === "" && after.suffix === "") {
      grouped = after.type === "fixed" ? isNamePart(first(after.value)) : !isCustom(after);
    }
    if (!grouped && part.prefix === "" && before?.type === "fixed" && options.prefix !== "") grouped = stringEndsWith(before.value, options.prefix);
    if (grouped) text += "{";
    text += escapePattern(part.prefix);
    if (custom) text += `:${part.name}`;
    if (part.type === "regexp") text += `(${part.value})`;
    else if (part.type === "segment") text += custom ? "" : `(${segment(options)})`;
    else if (!custom && (before === undefined || before.type === "fixed" || before.modifier !== "" || grouped || part.prefix !== "")) text += "*";
    else text += `(${full})`;
    if (part.type === "segment" && custom && part.suffix !== "" && isNamePart(first(part.suffix))) text += "\\";
    text += `${escapePattern(part.suffix)}${grouped ? "}" : ""}${part.modifier}`;
  }
  return text;
}

/** Compile a component (1.5): {pattern, regexp, names, hasGroups}. options: {delimiter, prefix, ignoreCase}. */
export function compile(input, encode, options) {
  const parts = parse(input, (text) => (text === "" ? "" : encode(text)), options);
  const names = list();
  let hasGroups = false;
  for (let i = 0; i < parts.length; i++) {
    if (parts[i].type !== "fixed") push(names, parts[i].name);
    if (parts[i].type === "regexp") hasGroups = true;
  }
  return { __proto__: null, pattern: toPattern(parts, options), regexp: toRegexp(parts, options), names, hasGroups };
}

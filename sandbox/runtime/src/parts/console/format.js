// Formatter (WHATWG Console, 2.2): substitutes %s, %d, %i, %f, %o, %O and %c of the first argument, and joins the rest.

import { inspectArgument } from "./inspect.js";
import {
  join,
  list,
  parseFloatText,
  parseIntegerText,
  push,
  stringIncludes,
  stringIndexOf,
  stringSlice,
  symbolToString,
} from "../../primordials.js";

const isObject = (value) => typeof value === "function" || (typeof value === "object" && value !== null);

/** Returns format(args): the text of a console call. Objects are never converted by their own methods. */
export function makeFormat(native, settings) {
  const inspect = (value, depth) => inspectArgument(native, settings, value, depth);

  const asText = (value) => (isObject(value) ? inspect(value, 1) : primitiveText(value));
  const asNumber = (parse) => (value) => {
    if (typeof value === "symbol" || isObject(value)) return "NaN";
    return inspect(parse(primitiveText(value), 10));
  };
  const conversions = {
    __proto__: null,
    s: asText,
    d: asNumber(parseIntegerText),
    i: asNumber(parseIntegerText),
    f: asNumber(parseFloatText),
    o: (value) => inspect(value),
    O: (value) => inspect(value),
    c: () => "",
  };

  return function format(args) {
    const parts = list();
    let next = 0;
    if (args.length > 1 && typeof args[0] === "string" && stringIncludes(args[0], "%")) {
      next = 1;
      push(parts, substitute(args[0], () => next < args.length, (convert) => convert(args[next++]), conversions));
    }
    for (; next < args.length; next++) push(parts, inspect(args[next]));
    return join(parts, " ");
  };
}

function substitute(template, hasArgument, convertNext, conversions) {
  let out = "";
  let from = 0;
  for (let at = stringIndexOf(template, "%"); at >= 0; at = stringIndexOf(template, "%", at)) {
    const mark = template[at + 1];
    const convert = mark === undefined ? undefined : conversions[mark];
    if (mark === "%") {
      out += stringSlice(template, from, at + 1);
    } else if (convert !== undefined && hasArgument()) {
      out += stringSlice(template, from, at) + convertNext(convert);
    } else {
      at++;
      continue;
    }
    at += 2;
    from = at;
  }
  return out + stringSlice(template, from);
}

const primitiveText = (value) => (typeof value === "symbol" ? symbolToString(value) : `${value}`);

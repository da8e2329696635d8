// The constructor string parser (URL Pattern Standard, https://urlpattern.spec.whatwg.org/#constructor-string-parsing,
// 1.6): cuts a pattern for a whole URL into patterns of its components.

import { min, stringSlice } from "../../primordials.js";
import { tokenize } from "./pattern.js";

const order = {
  __proto__: null, protocol: 0, authority: 1, username: 2, password: 3, hostname: 4, port: 5, pathname: 6, search: 7, hash: 8, done: 9,
};
const at = (state) => order[state];
const textual = { __proto__: null, char: true, escaped: true, invalid: true };
const groups = { __proto__: null, name: true, regexp: true, close: true, asterisk: true };

/** Returns a dictionary like URLPatternInit. isSpecial tells whether a pattern of protocols matches a special scheme. */
export function parseConstructor(input, isSpecial) {
  const tokens = tokenize(input, true);
  const result = { __proto__: null };
  let state = "init";
  let index = 0;
  let step = 1;
  let start = 0; // token where the component begins
  let depth = 0;
  let brackets = 0;
  let special = false;

  const tokenAt = (i) => tokens[min(i, tokens.length - 1)];
  const is = (i, value) => tokenAt(i).value === value && tokenAt(i).type in textual;
  const here = (value) => is(index, value);
  function isSearch() {
    if (here("?")) return true;
    if (tokens[index].value !== "?") return false;
    return index === 0 || !(tokens[index - 1].type in groups);
  }
  const component = () => stringSlice(input, tokenAt(start).index, tokens[index].index);
  function change(next, skip) {
    if (state !== "init" && state !== "authority") result[state] = component();
    if (state !== "init" && next !== "done") {
      if (at(state) <= at("password") && at(next) >= at("port")) result.hostname ??= "";
      if (at(state) <= at("port") && at(next) >= at("search")) result.pathname ??= special ? "/" : "";
      if (at(state) <= at("pathname") && next === "hash") result.search ??= "";
    }
    state = next;
    index += skip;
    start = index;
    step = 0;
  }
  function rewind(next) {
    index = start;
    step = 0;
    state = next;
  }
  // What ends a component whatever it is: the next one in the URL. from is the state of the first that may come.
  function follow(from) {
    if (from === "pathname" && here("/")) change("pathname", 0);
    else if (from !== "hash" && isSearch()) change("search", 1);
    else if (here("#")) change("hash", 1);
  }
  const steps = {
    __proto__: null,
    init() {
      if (here(":")) rewind("protocol");
    },
    protocol() {
      if (!here(":")) return;
      special = isSpecial(component());
      if (is(index + 1, "/") && is(index + 2, "/")) change("authority", 3);
      else change(special ? "authority" : "pathname", 1);
    },
    authority() {
      if (here("@")) rewind("username");
      else if (here("/") || isSearch() || here("#")) rewind("hostname");
    },
    username() {
      if (here(":")) change("password", 1);
      else if (here("@")) change("hostname", 1);
    },
    password() {
      if (here("@")) change("hostname", 1);
    },
    hostname() {
      if (here("[")) brackets++;
      else if (here("]")) brackets--;
      else if (here(":") && brackets === 0) change("port", 1);
      else follow("pathname");
    },
    port: () => follow("pathname"),
    pathname: () => follow("search"),
    search: () => follow("hash"),
    hash() {},
  };
  function end() {
    if (state === "init") {
      rewind("init");
      if (here("#")) change("hash", 1);
      else if (isSearch()) change("search", 1);
      else change("pathname", 0);
    } else if (state === "authority") {
      rewind("hostname");
    } else {
      change("done", 0);
    }
  }

  for (; index < tokens.length && state !== "done"; index += step) {
    step = 1;
    const { type } = tokens[index];
    if (type === "end") {
      end();
      continue;
    }
    if (type === "open") {
      depth++;
      continue;
    }
    if (depth > 0) {
      if (type !== "close") continue;
      depth--;
    }
    steps[state]();
  }
  if (result.hostname !== undefined) result.port ??= "";
  return result;
}

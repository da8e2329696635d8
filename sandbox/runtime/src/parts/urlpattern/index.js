// URLPattern (URL Pattern Standard, https://urlpattern.spec.whatwg.org/).

import {
  regexpExec, stringCharAt as charAt, stringEndsWith, stringIncludes, stringLastIndexOf, stringSlice, stringStartsWith, stringToLowerCase,
} from "../../primordials.js";
import { parseConstructor } from "./constructor.js";
import { compile, escapePattern } from "./pattern.js";

const components = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];

export default function urlpattern(core) {
  const { finish, isObject, native, need, SafeTypeError, toBoolean, toDictionary, toUSVString } = core;
  const urls = () => need("urls");
  const canonical = (name) => (value) => urls().canonical[name](value);
  const parse = (text, base) => urls().parse(text, base);

  const initMembers = [
    ["baseURL", toUSVString], ["hash", toUSVString], ["hostname", toUSVString], ["password", toUSVString], ["pathname", toUSVString],
    ["port", toUSVString], ["protocol", toUSVString], ["search", toUSVString], ["username", toUSVString],
  ];
  const optionMembers = [["ignoreCase", toBoolean, false]];

  // URLPatternInput: (USVString or URLPatternInit).
  const toInput = (value) => (value === undefined || value === null || isObject(value) ? toDictionary(value, initMembers, "The input") : toUSVString(value));

  // ---- canonicalization (3.1): each of a text that is not empty, or throws

  const fails = (what, value) => new SafeTypeError(`Invalid ${what}: '${value}'`);
  function checked(what, value, result) {
    if (result === null) throw fails(what, value);
    return result;
  }
  const encoders = {
    __proto__: null,
    protocol: (value) => checked("protocol", value, parse(`${value}://dummy.invalid/`)).scheme,
    username: canonical("username"),
    password: canonical("password"),
    hostname: (value) => checked("hostname", value, urls().canonical.hostname(value, false)),
    opaqueHostname: (value) => checked("hostname", value, urls().canonical.hostname(value, true)),
    IPv6(value) {
      for (let i = 0; i < value.length; i++) {
        if (!stringIncludes("0123456789abcdefABCDEF[]:", charAt(value, i))) throw fails("hostname", value);
      }
      return stringToLowerCase(value);
    },
    port: (value, protocol) => checked("port", value, urls().canonical.port(value, protocol)),
    pathname: canonical("pathname"),
    opaquePathname: canonical("opaquePathname"),
    search: canonical("search"),
    hash: canonical("hash"),
  };

  // ---- process a URLPatternInit (3.2)

  const isSpecialOrEmpty = (protocol) => protocol === undefined || protocol === "" || protocol in urls().defaultPorts;

  function isAbsolute(path, asPattern) {
    if (path === "") return false;
    return charAt(path, 0) === "/" || (asPattern && path.length > 1 && (charAt(path, 0) === "\\" || charAt(path, 0) === "{") && charAt(path, 1) === "/");
  }

  // The order in which a member of the input keeps those of the base behind it from applying. A user and a password of
  // the base are for inputs only, and apply with a host and port that are its own.
  const inheritance = ["protocol", "hostname", "port", "pathname", "search", "hash"];
  const inherits = (init, last) => {
    for (let i = 0; i < inheritance.length; i++) {
      if (init[inheritance[i]] !== undefined) return false;
      if (inheritance[i] === last) return true;
    }
    return true;
  };

  const partsOf = (url) => ({
    __proto__: null, protocol: url.scheme, username: url.username, password: url.password, hostname: url.host ?? "", port: url.port === null ? "" : `${url.port}`,
    pathname: url.path, search: url.query ?? "", hash: url.fragment ?? "",
  });

  function process(init, asPattern, defaults) {
    const result = { __proto__: null };
    for (let i = 0; i < components.length && defaults !== undefined; i++) result[components[i]] = defaults;
    const fromBase = asPattern ? escapePattern : (text) => text;
    let base = null;
    if (init.baseURL !== undefined) {
      base = parse(init.baseURL);
      if (base === null) throw fails("base URL", init.baseURL);
      const parts = partsOf(base);
      if (!asPattern && inherits(init, "port") && init.username === undefined) {
        result.username = parts.username;
        if (init.password === undefined) result.password = parts.password;
      }
      for (let i = 0; i < inheritance.length; i++) {
        if (inherits(init, inheritance[i])) result[inheritance[i]] = fromBase(parts[inheritance[i]]);
      }
    }
    const encode = (name, value, extra) => (asPattern || value === "" ? value : encoders[name](value, extra));
    const without = (text, prefix) => (stringStartsWith(text, prefix) ? stringSlice(text, 1) : text);
    if (init.protocol !== undefined) result.protocol = encode("protocol", stringEndsWith(init.protocol, ":") ? stringSlice(init.protocol, 0, -1) : init.protocol);
    if (init.username !== undefined) result.username = encode("username", init.username);
    if (init.password !== undefined) result.password = encode("password", init.password);
    if (init.hostname !== undefined) {
      result.hostname = encode(isSpecialOrEmpty(result.protocol) ? "hostname" : "opaqueHostname", init.hostname);
    }
    if (init.port !== undefined) result.port = encode("port", init.port, result.protocol);
    if (init.pathname !== undefined) {
      let path = init.pathname;
      if (base !== null && !base.opaque && !isAbsolute(path, asPattern)) {
        const folder = fromBase(base.path);
        path = stringSlice(folder, 0, stringLastIndexOf(folder, "/") + 1) + path;
      }
      result.pathname = encode(isSpecialOrEmpty(result.protocol) ? "pathname" : "opaquePathname", path);
    }
    if (init.search !== undefined) result.search = encode("search", without(init.search, "?"));
    if (init.hash !== undefined) result.hash = encode("hash", without(init.hash, "#"));
    return result;
  }

  // ---- the interface (1.2)

  const plain = { __proto__: null, delimiter: "", prefix: "", ignoreCase: false };
  const hosts = { __proto__: null, delimiter: ".", prefix: "", ignoreCase: false };
  function matchesSpecial(component) {
    for (const scheme in urls().defaultPorts) if (regexpExec(component.regexp, scheme) !== null) return true;
    return false;
  }
  const isIPv6 = (pattern) => pattern.length > 1 && (charAt(pattern, 0) === "[" || ((charAt(pattern, 0) === "{" || charAt(pattern, 0) === "\\") && charAt(pattern, 1) === "["));

  function create(input, baseURL, ignoreCase) {
    let init = input;
    if (typeof input === "string") {
      init = parseConstructor(input, (protocol) => matchesSpecial(compile(protocol, encoders.protocol, plain)));
      if (baseURL === undefined && init.protocol === undefined) throw new SafeTypeError("A relative pattern needs a base URL.");
      if (baseURL !== undefined) init.baseURL = baseURL;
    } else if (baseURL !== undefined) {
      throw new SafeTypeError("A base URL goes with a string only.");
    }
    const patterns = process(init, true, undefined);
    for (let i = 0; i < components.length; i++) patterns[components[i]] ??= "*";
    if (patterns.protocol in urls().defaultPorts && patterns.port === `${urls().defaultPorts[patterns.protocol]}`) patterns.port = "";
    const compiled = { __proto__: null };
    const compileAs = (name, options, encoder = name) => { compiled[name] = compile(patterns[name], encoders[encoder], options); };
    compileAs("protocol", plain);
    compileAs("username", plain);
    compileAs("password", plain);
    compileAs("port", plain);
    const special = matchesSpecial(compiled.protocol);
    const host = isIPv6(patterns.hostname) ? "IPv6" : special || compiled.protocol.pattern === "*" ? "hostname" : "opaqueHostname";
    compileAs("hostname", hosts, host);
    const cased = { __proto__: null, delimiter: "", prefix: "", ignoreCase };
    if (special) compileAs("pathname", { __proto__: null, delimiter: "/", prefix: "/", ignoreCase });
    else compileAs("pathname", cased, "opaquePathname");
    compileAs("search", cased);
    compileAs("hash", cased);
    return compiled;
  }

  // Match (1.5): null, or the result. input has been converted.
  function match(compiled, input, baseURL) {
    const inputs = [input];
    let parts;
    if (typeof input === "string") {
      let base = null;
      if (baseURL !== undefined) {
        base = parse(baseURL);
        if (base === null) return null;
        core.define(inputs, 1, baseURL);
      }
      const url = parse(input, base);
      if (url === null) return null;
      parts = partsOf(url);
    } else {
      if (baseURL !== undefined) throw new SafeTypeError("A base URL goes with a string only.");
      inputs[0] = { ...input };
      try {
        parts = process(input, false, "");
      } catch {
        return null;
      }
    }
    const result = { inputs };
    for (let i = 0; i < components.length; i++) {
      const name = components[i];
      const { names, regexp } = compiled[name];
      const found = regexpExec(regexp, parts[name]);
      if (found === null) return null;
      const groups = {};
      for (let k = 0; k < names.length; k++) core.define(groups, names[k], found[k + 1]);
      core.define(result, name, { input: parts[name], groups });
    }
    return result;
  }

  class URLPattern {
    #compiled;
    constructor(given = undefined, second = undefined, third = undefined) {
      native.brand(this); // a platform object, which no structured clone takes
      const input = toInput(given);
      // Two overloads: (input, baseURL, options) and (input, options).
      const withBase = arguments.length > 2 || !(second === undefined || second === null || isObject(second));
      const baseURL = withBase ? toUSVString(second) : undefined;
      const { ignoreCase } = toDictionary(withBase ? third : second, optionMembers, "The options");
      this.#compiled = create(input, baseURL, ignoreCase);
    }
    test(input = undefined, baseURL = undefined) {
      const compiled = this.#compiled;
      return match(compiled, toInput(input), baseURL === undefined ? undefined : toUSVString(baseURL)) !== null;
    }
    exec(input = undefined, baseURL = undefined) {
      const compiled = this.#compiled;
      return match(compiled, toInput(input), baseURL === undefined ? undefined : toUSVString(baseURL));
    }
    get protocol() {
      return this.#compiled.protocol.pattern;
    }
    get username() {
      return this.#compiled.username.pattern;
    }
    get password() {
      return this.#compiled.password.pattern;
    }
    get hostname() {
      return this.#compiled.hostname.pattern;
    }
    get port() {
      return this.#compiled.port.pattern;
    }
    get pathname() {
      return this.#compiled.pathname.pattern;
    }
    get search() {
      return this.#compiled.search.pattern;
    }
    get hash() {
      return this.#compiled.hash.pattern;
    }
    get hasRegExpGroups() {
      const compiled = this.#compiled;
      for (let i = 0; i < components.length; i++) if (compiled[components[i]].hasGroups) return true;
      return false;
    }
  }
  finish(URLPattern, { __proto__: null, name: "URLPattern" });

  return { __proto__: null, URLPattern };
}

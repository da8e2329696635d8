// URL and URLSearchParams (URL Standard, https://url.spec.whatwg.org/#api, 6).

import { exportLater, once } from "../../once.js";
import { makeSearchParams } from "./params.js";

export default function url(core) {
  const { finish, isObject, requireArguments, SafeTypeError, stringSlice, toUSVString } = core;
  const urls = () => core.need("urls");
  const params = once(() => makeSearchParams(core));

  const invalid = (operation, text) => new SafeTypeError(`${operation}: Invalid URL: '${stringSlice(text, 0, 200)}'`);

  // The API URL parser (6.1). base is a text or undefined.
  function parseWithBase(text, base) {
    const { parse } = urls();
    if (base === undefined) return parse(text);
    const record = parse(base);
    return record && parse(text, record);
  }

  let recordOf;

  class URL {
    #record;
    #params; // made on first use
    #stale = false; // the record lacks what was changed through the params
    static {
      recordOf = (object) => (isObject(object) && #record in object ? object.#whole() : undefined);
    }
    constructor(url, base = undefined) {
      core.native.brand(this); // a platform object, which no structured clone takes
      requireArguments("new URL", arguments.length, 1);
      const text = toUSVString(url);
      this.#record = parseWithBase(text, base === undefined ? undefined : toUSVString(base));
      if (this.#record === null) throw invalid("Failed to construct 'URL'", text);
    }
    static parse(url, base = undefined) {
      requireArguments("parse' on 'URL", arguments.length, 1);
      const text = toUSVString(url);
      const record = parseWithBase(text, base === undefined ? undefined : toUSVString(base));
      return record === null ? null : URL.#from(record);
    }
    static canParse(url, base = undefined) {
      requireArguments("canParse' on 'URL", arguments.length, 1);
      const text = toUSVString(url);
      return parseWithBase(text, base === undefined ? undefined : toUSVString(base)) !== null;
    }
    static #from(record) {
      const url = new URL("about:blank");
      url.#record = record;
      return url;
    }
    // The record, for those who read its query. Each change of the params would cost as much as all before it if it
    // were written at once.
    #whole() {
      if (this.#stale) {
        const query = urls().serializeForm(params().listOf(this.#params));
        this.#record.query = query === "" ? null : query;
        this.#stale = false;
      }
      return this.#record;
    }
    get href() {
      return urls().serialize(this.#whole());
    }
    set href(value) {
      this.#record;
      const text = toUSVString(value);
      const record = urls().parse(text);
      if (record === null) throw invalid("Failed to set the 'href' property on 'URL'", text);
      this.#record = record;
      this.#refill();
    }
    #refill() {
      this.#stale = false;
      if (this.#params !== undefined) params().refill(this.#params, this.#record.query ?? "");
    }
    get origin() {
      return urls().originOf(this.#record);
    }
    get protocol() {
      return `${this.#record.scheme}:`;
    }
    set protocol(value) {
      urls().setters.protocol(this.#record, toUSVString(value));
    }
    get username() {
      return this.#record.username;
    }
    set username(value) {
      urls().setters.username(this.#record, toUSVString(value));
    }
    get password() {
      return this.#record.password;
    }
    set password(value) {
      urls().setters.password(this.#record, toUSVString(value));
    }
    get host() {
      return this.#record.host === null ? "" : urls().serializeHost(this.#record);
    }
    set host(value) {
      urls().setters.host(this.#record, toUSVString(value));
    }
    get hostname() {
      return this.#record.host ?? "";
    }
    set hostname(value) {
      urls().setters.hostname(this.#record, toUSVString(value));
    }
    get port() {
      const { port } = this.#record;
      return port === null ? "" : `${port}`;
    }
    set port(value) {
      urls().setters.port(this.#record, toUSVString(value));
    }
    get pathname() {
      return this.#record.path;
    }
    set pathname(value) {
      urls().setters.pathname(this.#record, toUSVString(value));
    }
    get search() {
      const { query } = this.#whole();
      return query === null || query === "" ? "" : `?${query}`;
    }
    set search(value) {
      this.#record;
      const text = toUSVString(value);
      urls().setters.search(this.#record, text);
      this.#refill();
    }
    get searchParams() {
      this.#record;
      return (this.#params ??= params().bind(this.#record.query ?? "", () => {
        this.#stale = true;
      }));
    }
    get hash() {
      const { fragment } = this.#record;
      return fragment === null || fragment === "" ? "" : `#${fragment}`;
    }
    set hash(value) {
      urls().setters.hash(this.#record, toUSVString(value));
    }
    toString() {
      return urls().serialize(this.#whole());
    }
    toJSON() {
      return urls().serialize(this.#whole());
    }
  }
  // File API, 8.4: the table of blob: URLs is in the part that makes blobs.
  const objectURLs = {
    createObjectURL(object) {
      core.requireArguments("createObjectURL' on 'URL", arguments.length, 1);
      return core.need("blob").createObjectURL(object);
    },
    revokeObjectURL(url) {
      core.requireArguments("revokeObjectURL' on 'URL", arguments.length, 1);
      core.need("blob").revokeObjectURL(`${url}`);
    },
  };
  core.define(URL, "createObjectURL", objectURLs.createObjectURL);
  core.define(URL, "revokeObjectURL", objectURLs.revokeObjectURL);
  finish(URL, { __proto__: null, name: "URL" });
  enumerableStatics(core, URL);

  // The text of a URL and the pairs of a URLSearchParams, undefined for other values.
  const hrefOf = (object) => {
    const record = recordOf(object);
    return record === undefined ? undefined : urls().serialize(record);
  };
  const pairsOf = (object) => params().listOf(object);
  const exports = { __proto__: null, URL, hrefOf, pairsOf };
  exportLater(exports, "URLSearchParams", () => params().URLSearchParams);
  return exports;
}

// Static operations are enumerable (Web IDL, 3.7.7).
function enumerableStatics({ define, ownKeys }, constructor) {
  const keys = ownKeys(constructor);
  for (let i = 0; i < keys.length; i++) {
    const value = constructor[keys[i]];
    if (typeof value === "function") define(constructor, keys[i], value);
  }
}

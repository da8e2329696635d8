// URLSearchParams (URL Standard, https://url.spec.whatwg.org/#interface-urlsearchparams, 6.2).

export function makeSearchParams(core) {
  const { arraySort, finish, iterable, iterate, isObject, requireArguments, SafeTypeError, symbolIterator, toRecord, toSequence, toUSVString } = core;
  const urls = () => core.need("urls");
  const needs = (operation, given, required) => requireArguments(`${operation}' on 'URLSearchParams`, given, required);

  // sequence<sequence<USVString>>, record<USVString, USVString> or USVString.
  function toPairs(init) {
    if (!isObject(init)) {
      const text = toUSVString(init);
      return urls().parseForm(core.stringCharAt(text, 0) === "?" ? core.stringSlice(text, 1) : text);
    }
    const method = init[symbolIterator];
    if (method === undefined || method === null) return toRecord(init, toUSVString, toUSVString, "The record");
    const rows = iterate(init, method, (row) => toSequence(row, toUSVString, "Each pair"), "The sequence");
    for (let i = 0; i < rows.length; i++) {
      if (rows[i].length !== 2) throw new SafeTypeError("Failed to construct 'URLSearchParams': each pair must have two items, a name and a value.");
    }
    return rows;
  }

  let listOf;
  let bind;
  let refill;

  class URLSearchParams {
    #pairs;
    #changed; // tells the URL that owns the object
    static {
      listOf = (object) => (isObject(object) && #pairs in object ? object.#pairs : undefined);
      // A new object for the query of a URL; changed is called after each change.
      bind = (query, changed) => {
        const params = new URLSearchParams();
        params.#pairs = urls().parseForm(query);
        params.#changed = changed;
        return params;
      };
      refill = (params, query) => (params.#pairs = urls().parseForm(query));
    }
    constructor(init = "") {
      core.native.brand(this); // a platform object, which no structured clone takes
      this.#pairs = toPairs(init);
    }
    #update() {
      if (this.#changed !== undefined) this.#changed();
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      const pairs = this.#pairs;
      needs("append", arguments.length, 2);
      const pair = [toUSVString(name), toUSVString(value)];
      core.define(pairs, pairs.length, pair);
      this.#update();
    }
    delete(name, value = undefined) {
      needs("delete", this.#pairs && arguments.length, 1);
      const key = toUSVString(name);
      const wanted = value === undefined ? undefined : toUSVString(value);
      keep(this.#pairs, (pair) => pair[0] !== key || (wanted !== undefined && pair[1] !== wanted));
      this.#update();
    }
    get(name) {
      needs("get", this.#pairs && arguments.length, 1);
      const pair = find(this.#pairs, toUSVString(name));
      return pair === undefined ? null : pair[1];
    }
    getAll(name) {
      needs("getAll", this.#pairs && arguments.length, 1);
      const key = toUSVString(name);
      const values = [];
      for (let i = 0; i < this.#pairs.length; i++) {
        if (this.#pairs[i][0] === key) core.define(values, values.length, this.#pairs[i][1]);
      }
      return values;
    }
    has(name, value = undefined) {
      needs("has", this.#pairs && arguments.length, 1);
      const key = toUSVString(name);
      return find(this.#pairs, key, value === undefined ? undefined : toUSVString(value)) !== undefined;
    }
    set(name, value) {
      needs("set", this.#pairs && arguments.length, 2);
      const pair = [toUSVString(name), toUSVString(value)];
      let found = false;
      keep(this.#pairs, (old) => {
        if (old[0] !== pair[0]) return true;
        if (found) return false;
        old[1] = pair[1];
        return (found = true);
      });
      if (!found) core.define(this.#pairs, this.#pairs.length, pair);
      this.#update();
    }
    // By code units, and stable.
    sort() {
      arraySort(this.#pairs, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      this.#update();
    }
    toString() {
      return urls().serializeForm(this.#pairs);
    }
  }

  function find(pairs, name, value) {
    for (let i = 0; i < pairs.length; i++) {
      if (pairs[i][0] === name && (value === undefined || pairs[i][1] === value)) return pairs[i];
    }
    return undefined;
  }

  function keep(pairs, wanted) {
    let size = 0;
    for (let i = 0; i < pairs.length; i++) if (wanted(pairs[i])) pairs[size++] = pairs[i];
    pairs.length = size;
  }

  finish(URLSearchParams, { __proto__: null, name: "URLSearchParams" });
  iterable(URLSearchParams, "URLSearchParams", (object) => {
    const pairs = listOf(object);
    if (pairs === undefined) throw new SafeTypeError("Illegal invocation");
    return pairs;
  });
  return { __proto__: null, URLSearchParams, listOf, bind, refill };
}

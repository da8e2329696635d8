// Request (Fetch, 5.4: https://fetch.spec.whatwg.org/#request-class). There is no document and no origin: URLs must be
// absolute, and what modes, credentials and caching would mean is kept but not acted on.

export function makeRequests(core, headers, bodies, baseURL) {
  const {
    finish, isObject, native, requireArguments, SafeTypeError, stringToLowerCase, toBoolean, toByteString, toDictionary, toDOMString, toEnum, toUSVString,
  } = core;
  const { Headers, slotsOf: headerSlots } = headers;
  const events = () => core.need("abort");
  const url = () => core.need("urls");
  let slotsOf, isRequest;

  const oneOf = (values, what) => (value) => toEnum(value, values, what);
  const toSignal = (value) => {
    if (value !== null) events().isAborted(value); // throws on anything else
    return value;
  };
  const members = () => [
    ["body", bodies.toBodyInit],
    ["cache", oneOf(["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"], "The cache mode")],
    ["credentials", oneOf(["omit", "same-origin", "include"], "The credentials mode")],
    ["duplex", oneOf(["half"], "The duplex mode")],
    ["headers", headers.toInit],
    ["integrity", toDOMString],
    ["keepalive", toBoolean],
    ["method", (value) => toByteString(value, "The method")],
    ["mode", oneOf(["navigate", "same-origin", "no-cors", "cors"], "The mode")],
    ["priority", oneOf(["high", "low", "auto"], "The priority")],
    ["redirect", oneOf(["follow", "error", "manual"], "The redirect mode")],
    ["referrer", toUSVString],
    ["referrerPolicy", oneOf([
      "", "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin", "origin-when-cross-origin",
      "strict-origin-when-cross-origin", "unsafe-url",
    ], "The referrer policy")],
    ["signal", toSignal],
    ["window", (value) => value],
  ];

  const plain = () => ({
    __proto__: null, method: "GET", url: undefined, referrer: "about:client", referrerPolicy: "", mode: "cors", credentials: "same-origin",
    cache: "default", redirect: "follow", integrity: "", keepalive: false, body: null, headers: undefined, headersObject: undefined, parent: null,
    signal: undefined, blob: undefined,
  });

  const upper = { __proto__: null, delete: "DELETE", get: "GET", head: "HEAD", options: "OPTIONS", post: "POST", put: "PUT" };
  function toMethod(method) {
    const lower = stringToLowerCase(method);
    if (!headers.isToken(method)) throw new SafeTypeError(`'${method}' is not a valid HTTP method.`);
    if (lower === "connect" || lower === "trace" || lower === "track") throw new SafeTypeError(`The method '${method}' is not allowed.`);
    return upper[lower] ?? method;
  }

  function parseURL(text) {
    const record = url().parse(text, baseURL());
    if (record === null) throw new SafeTypeError(`'${text}' is not an absolute URL; relative ones have no base here.`);
    if (record.username || record.password) throw new SafeTypeError("The URL of a request must not have a user name or a password.");
    return url().serialize(record);
  }

  function start(input) {
    if (!isRequest(input)) {
      const slots = plain();
      slots.url = parseURL(toUSVString(input));
      // URL, 4.4: the blob that a blob: URL names when it is parsed, whatever is revoked later.
      if (core.stringStartsWith(slots.url, "blob:")) slots.blob = core.need("blob").resolveObjectURL(slots.url);
      return slots;
    }
    const from = slotsOf(input);
    return { __proto__: null, ...from, headers: undefined, headersObject: undefined, body: null, parent: input, signal: undefined };
  }

  function applyInit(slots, init) {
    if (init.window !== undefined && init.window !== null) throw new SafeTypeError("The option window can only be null.");
    if (init.referrer !== undefined) slots.referrer = toReferrer(init.referrer);
    if (init.referrerPolicy !== undefined) slots.referrerPolicy = init.referrerPolicy;
    if (init.mode === "navigate") throw new SafeTypeError("The mode 'navigate' is not allowed.");
    const simple = ["mode", "credentials", "cache", "redirect", "integrity", "keepalive"];
    for (let i = 0; i < simple.length; i++) if (init[simple[i]] !== undefined) slots[simple[i]] = init[simple[i]];
    if (slots.cache === "only-if-cached" && slots.mode !== "same-origin") {
      throw new SafeTypeError("The cache mode 'only-if-cached' needs the mode 'same-origin'.");
    }
    if (init.method !== undefined) slots.method = toMethod(init.method);
    if (slots.mode === "no-cors" && slots.method !== "GET" && slots.method !== "HEAD" && slots.method !== "POST") {
      throw new SafeTypeError(`The mode 'no-cors' does not allow the method '${slots.method}'.`);
    }
    if (init.signal !== undefined) slots.parent = init.signal;
  }

  function toReferrer(referrer) {
    if (referrer === "") return "";
    const record = url().parse(referrer, baseURL());
    if (record === null) throw new SafeTypeError(`'${referrer}' is not an absolute URL.`);
    const base = baseURL(); // without one no referrer can be of our origin
    if (base === null || record.scheme === "about" || url().originOf(record) !== url().originOf(base)) return "about:client";
    return url().serialize(record);
  }

  function applyHeaders(slots, init, input) {
    slots.headersObject = new Headers();
    slots.headers = headerSlots(slots.headersObject);
    if (init.headers !== undefined) headers.fill(slots.headers, init.headers);
    else if (isRequest(input)) copyHeaders(slotsOf(input).headers, slots.headers);
  }
  const copyHeaders = (from, to) => {
    for (let i = 0; i < from.pairs.length; i++) headers.add(to, from.pairs[i][2], from.pairs[i][1]);
  };

  function applyBody(slots, init, input) {
    const inputBody = isRequest(input) ? slotsOf(input).body : null;
    const given = init.body !== undefined && init.body !== null;
    if ((given || inputBody !== null) && (slots.method === "GET" || slots.method === "HEAD")) {
      throw new SafeTypeError("A request with the method GET or HEAD cannot have a body.");
    }
    if (given) {
      const { body, type } = init.body();
      if (type !== null && !headers.has(slots.headers, "content-type")) headers.append(slots.headers, "Content-Type", type);
      if (core.hasOwn(init.body, "isStream") && init.duplex === undefined) throw new SafeTypeError("A request whose body is a stream needs the option duplex: 'half'.");
      slots.body = body;
    } else if (inputBody !== null) {
      if (inputBody.isUnusable()) throw new SafeTypeError("The body of the request was used already, or is locked.");
      slots.body = inputBody.take();
    }
  }

  class Request {
    #slots;
    static {
      slotsOf = (value) => value.#slots;
      isRequest = (value) => isObject(value) && #slots in value;
    }
    constructor(input, init = undefined) {
      native.brand(this);
      if (init === bodies) {
        this.#slots = input;
        return;
      }
      requireArguments("Request", arguments.length, 1);
      const slots = start(input);
      const converted = toDictionary(init, members(), "The options");
      applyInit(slots, converted);
      applyHeaders(slots, converted, input);
      applyBody(slots, converted, input);
      this.#slots = slots;
      signalOf(slots);
    }
    get method() { return this.#slots.method; }
    get url() { return this.#slots.url; }
    get headers() { return this.#slots.headersObject; }
    get destination() { return this.#slots, ""; }
    get referrer() { return this.#slots.referrer; }
    get referrerPolicy() { return this.#slots.referrerPolicy; }
    get mode() { return this.#slots.mode; }
    get credentials() { return this.#slots.credentials; }
    get cache() { return this.#slots.cache; }
    get redirect() { return this.#slots.redirect; }
    get integrity() { return this.#slots.integrity; }
    get keepalive() { return this.#slots.keepalive; }
    get isReloadNavigation() { return this.#slots, false; }
    get isHistoryNavigation() { return this.#slots, false; }
    get signal() { return signalOf(this.#slots); }
    get duplex() { return this.#slots, "half"; }
    clone() {
      const slots = this.#slots;
      if (slots.body !== null && slots.body.isUnusable()) throw new SafeTypeError("The body of the request was used already, or is locked.");
      const copy = { __proto__: null, ...slots, body: slots.body === null ? null : slots.body.clone(), parent: this, signal: undefined };
      copy.headersObject = new Headers();
      copy.headers = headerSlots(copy.headersObject);
      copyHeaders(slots.headers, copy.headers);
      return new Request(copy, bodies);
    }
  }
  bodies.mixIn(Request, (value) => slotsOf(value));
  finish(Request, { __proto__: null, name: "Request" });

  // The signal follows the one given, or that of the request it was made from.
  function signalOf(slots) {
    if (slots.signal === undefined) {
      const { parent } = slots;
      if (parent === null) slots.signal = events().createSignal();
      else slots.signal = events().combineSignals([isRequest(parent) ? signalOf(slotsOf(parent)) : parent]);
    }
    return slots.signal;
  }

  return { __proto__: null, Request, requestOf: slotsOf, isRequest, signalOf, parseURL };
}

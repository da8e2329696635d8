// Response (Fetch, 5.5: https://fetch.spec.whatwg.org/#response-class).

export function makeResponses(core, headers, bodies, baseURL) {
  const { finish, isObject, native, requireArguments, SafeRangeError, SafeTypeError, stringCharCodeAt, toByteString, toDictionary, toUnsignedShort, toUSVString } = core;
  const { Headers, slotsOf: headerSlots } = headers;
  let slotsOf, isResponse;

  const members = () => [
    ["headers", headers.toInit], ["status", toUnsignedShort, 200], ["statusText", (value) => toByteString(value, "The status text"), ""],
  ];

  function checkReason(text) {
    for (let i = 0; i < text.length; i++) {
      const unit = stringCharCodeAt(text, i);
      if (unit !== 9 && (unit < 0x20 || unit === 0x7f)) throw new SafeTypeError("The status text has a character that is not allowed.");
    }
    return text;
  }
  const isNullStatus = (status) => status === 101 || status === 103 || status === 204 || status === 205 || status === 304;

  /** The slots of a new response. url is a text without a fragment, or "". */
  function newSlots(status, statusText, type = "default", url = "") {
    const headersObject = new Headers();
    return { __proto__: null, type, url, redirected: false, status, statusText, headersObject, headers: headerSlots(headersObject), body: null };
  }

  // "initialize a response"
  function initialize(init, extracted) {
    if (init.status < 200 || init.status > 599) throw new SafeRangeError("The status must be from 200 to 599.");
    const slots = newSlots(init.status, checkReason(init.statusText));
    if (init.headers !== undefined) headers.fill(slots.headers, init.headers);
    if (extracted !== null) {
      if (isNullStatus(init.status)) throw new SafeTypeError(`A response with the status ${init.status} cannot have a body.`);
      const { body, type } = extracted();
      slots.body = body;
      if (type !== null && !headers.has(slots.headers, "content-type")) headers.append(slots.headers, "Content-Type", type);
    }
    return slots;
  }

  class Response {
    #slots;
    static {
      slotsOf = (value) => value.#slots;
      isResponse = (value) => isObject(value) && #slots in value;
    }
    constructor(body = null, init = undefined) {
      native.brand(this);
      if (init === bodies) {
        this.#slots = body;
        return;
      }
      const extracted = bodies.toBodyInit(body);
      this.#slots = initialize(toDictionary(init, members(), "The options"), extracted);
    }
    static error() {
      const slots = newSlots(0, "", "error");
      slots.headers.guard = "immutable";
      return make(slots);
    }
    static redirect(url, status = 302) {
      requireArguments("redirect' on 'Response", arguments.length, 1);
      const text = toUSVString(url);
      const code = toUnsignedShort(status);
      const { parse, serialize } = core.need("urls");
      const record = parse(text, baseURL());
      if (record === null) throw new SafeTypeError(`'${text}' is not an absolute URL; relative ones have no base here.`);
      if (code !== 301 && code !== 302 && code !== 303 && code !== 307 && code !== 308) throw new SafeRangeError(`The status ${code} is no redirect.`);
      const slots = newSlots(code, "");
      headers.append(slots.headers, "Location", serialize(record));
      slots.headers.guard = "immutable";
      return make(slots);
    }
    static json(data, init = undefined) {
      requireArguments("json' on 'Response", arguments.length, 1);
      const text = core.stringifyJSON(data);
      if (text === undefined) throw new SafeTypeError("The data cannot be written as JSON.");
      return make(initialize(toDictionary(init, members(), "The options"), () => bodies.textBody(text, "application/json")));
    }
    get type() { return this.#slots.type; }
    get url() { return this.#slots.url; }
    get redirected() { return this.#slots.redirected; }
    get status() { return this.#slots.status; }
    get ok() {
      const { status } = this.#slots;
      return status >= 200 && status <= 299;
    }
    get statusText() { return this.#slots.statusText; }
    get headers() { return this.#slots.headersObject; }
    clone() {
      const slots = this.#slots;
      if (slots.body !== null && slots.body.isUnusable()) throw new SafeTypeError("The body of the response was used already, or is locked.");
      const copy = newSlots(slots.status, slots.statusText, slots.type, slots.url);
      copy.redirected = slots.redirected;
      for (let i = 0; i < slots.headers.pairs.length; i++) headers.add(copy.headers, slots.headers.pairs[i][2], slots.headers.pairs[i][1]);
      copy.headers.guard = slots.headers.guard;
      if (slots.body !== null) copy.body = slots.body.clone();
      return make(copy);
    }
  }
  bodies.mixIn(Response, (value) => slotsOf(value));
  finish(Response, { __proto__: null, name: "Response" });
  const statics = ["error", "redirect", "json"];
  for (let i = 0; i < statics.length; i++) core.define(Response, statics[i], Response[statics[i]]);
  const make = (slots) => new Response(slots, bodies);

  return { __proto__: null, Response, responseOf: slotsOf, isResponse, newSlots, makeResponse: make };
}

// EventSource (HTML, 9.2, https://html.spec.whatwg.org/#server-sent-events) over the library's own fetch. The stream's
// lines are split as bytes, since no byte of a longer UTF-8 sequence is one of theirs.

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 2;

const defaultRetry = 3000; // milliseconds; the standard leaves the choice
const minRetry = 10; // a server that wants none would be asked without pause

export default function eventSource(core) {
  const { Bytes, EventTarget, finish, makeException, native, need, requireArguments, stringCharCodeAt, stringIndexOf, stringSlice, toBoolean, toDictionary, toUSVString, typedArrayBuffer, typedArrayByteOffset, typedArrayLength, typedArraySet } = core;
  const { Event, fire, handlerAttributes } = need("events");
  const http = () => need("http");
  const fetching = () => need("fetch");
  const streams = () => need("streams");
  let stateOf;

  class State {
    source;
    url;
    withCredentials;
    readyState = CONNECTING;
    retry = defaultRetry;
    lastEventId = ""; // the one to send
    abort = undefined; // of the fetch under way
    timer = 0;
    constructor(source, url, withCredentials) {
      this.source = source;
      this.url = url;
      this.withCredentials = withCredentials;
    }
  }

  const members = [["withCredentials", toBoolean, false]];

  class EventSource extends EventTarget {
    #state;
    constructor(url, eventSourceInitDict = undefined) {
      requireArguments("EventSource", arguments.length, 1);
      super();
      const text = toUSVString(url);
      const { withCredentials } = toDictionary(eventSourceInitDict, members, "The options");
      const record = need("urls").parse(text, http().baseURL());
      if (record === null) throw makeException(`'${text}' is not an absolute URL; relative ones have no base here.`, "SyntaxError");
      const address = need("urls").serialize(record);
      fetching().checkNetwork(address, "EventSource");
      this.#state = new State(this, address, withCredentials);
      if (record.scheme === "http" || record.scheme === "https") connect(this.#state);
      else later(this.#state, () => fail(this.#state, `the scheme of ${address} is not supported`));
    }
    get url() { return this.#state.url; }
    get withCredentials() { return this.#state.withCredentials; }
    get readyState() { return this.#state.readyState; }
    close() {
      const state = this.#state;
      state.readyState = CLOSED;
      if (state.timer !== 0) core.stopTimer(state.timer);
      state.timer = 0;
      state.abort?.();
    }
    static {
      stateOf = (source) => source.#state;
    }
  }
  finish(EventSource, { __proto__: null, name: "EventSource", constants: { __proto__: null, CONNECTING, OPEN, CLOSED } });
  handlerAttributes(EventSource, ["open", "message", "error"], stateOf);

  function connect(state) {
    const { addHeader, open } = fetching();
    const { Request, requestOf } = http();
    const request = new Request(state.url, { __proto__: null, cache: "no-store", credentials: state.withCredentials ? "include" : "same-origin" });
    const slots = requestOf(request);
    addHeader(slots, "Accept", "text/event-stream");
    addHeader(slots, "Cache-Control", "no-cache");
    if (state.lastEventId !== "") addHeader(slots, "Last-Event-ID", native.latin1(native.utf8Encode(state.lastEventId)));
    state.abort = open(slots, (response) => receive(state, response), (error) => lose(state, error));
  }

  const later = (state, task) => core.startTimer(() => {
    if (state.readyState !== CLOSED) task();
  }, 0);

  function receive(state, response) {
    if (state.readyState === CLOSED) return;
    const type = http().mimeOf(response);
    if (response.status !== 200 || type === null || type.essence !== "text/event-stream") {
      state.abort();
      later(state, () => fail(state, response.status === 200 ? "the response is no text/event-stream" : `the response has the status ${response.status}`));
      return;
    }
    later(state, () => {
      state.readyState = OPEN;
      fire(state.source, Event, "open");
    });
    const parser = new Parser(state, need("urls").originOf(need("urls").parse(response.url, null)));
    if (response.body === null) return reconnect(state);
    const reader = streams().acquireReader(response.body.getStream());
    const next = () => {
      if (state.readyState !== CLOSED) reader.read(request);
    };
    const request = {
      __proto__: null,
      chunk(bytes) {
        parser.feed(bytes);
        next();
      },
      close: () => reconnect(state),
      error: () => reconnect(state),
    };
    next();
  }

  // A failure of the network may pass; a refusal will not.
  function lose(state, error) {
    if (state.readyState === CLOSED) return;
    if (core.isObject(error) && error.code === "NETWORK") reconnect(state);
    else later(state, () => fail(state, `${core.isObject(error) ? error.message : error}`));
  }

  // 9.2.3 "fail the connection". The event does not say why, so the log does.
  function fail(state, why) {
    state.readyState = CLOSED;
    native.log("warn", `EventSource: ${why}`);
    fire(state.source, Event, "error");
  }

  // 9.2.3 "reestablish the connection".
  function reconnect(state) {
    later(state, () => {
      state.readyState = CONNECTING;
      fire(state.source, Event, "error");
      if (state.readyState !== CONNECTING) return;
      state.timer = core.startTimer(() => {
        state.timer = 0;
        if (state.readyState === CONNECTING) connect(state);
      }, core.max(state.retry, minRetry));
    });
  }

  // 9.2.6 "interpreting an event stream".
  class Parser {
    state;
    origin;
    rest = new Bytes(0); // of a line whose end has not come
    begun = false; // the place of a byte order mark is past
    afterCR = false;
    data = "";
    hasData = false;
    type = "";
    id;
    constructor(state, origin) {
      this.state = state;
      this.origin = origin;
      this.id = state.lastEventId;
    }
    feed(bytes) {
      let all = bytes;
      const before = typedArrayLength(this.rest);
      if (before > 0) {
        all = new Bytes(before + typedArrayLength(bytes));
        typedArraySet(all, this.rest, 0);
        typedArraySet(all, bytes, before);
      }
      const end = typedArrayLength(all);
      let from = 0;
      let at = before; // what was there has no line end
      if (!this.begun) {
        const mark = markLength(all);
        if (mark < 0) {
          this.rest = all;
          return;
        }
        this.begun = true;
        from = mark;
        at = mark; // until now nothing was looked at
      }
      for (; at < end; at++) {
        const byte = all[at];
        if (byte !== 10 && byte !== 13) {
          this.afterCR = false;
          continue;
        }
        if (byte === 10 && this.afterCR) {
          this.afterCR = false;
          from = at + 1;
          continue;
        }
        this.afterCR = byte === 13;
        this.line(native.utf8Decode(part(all, from, at), false));
        from = at + 1;
      }
      this.rest = part(all, from, end);
    }
    line(text) {
      if (text === "") return this.dispatch();
      const colon = stringIndexOf(text, ":");
      if (colon === 0) return;
      const name = colon < 0 ? text : stringSlice(text, 0, colon);
      let value = colon < 0 ? "" : stringSlice(text, colon + 1);
      if (value !== "" && stringCharCodeAt(value, 0) === 32) value = stringSlice(value, 1);
      if (name === "event") {
        this.type = value;
      } else if (name === "data") {
        this.data += `${value}\n`;
        this.hasData = true;
      } else if (name === "id") {
        if (stringIndexOf(value, "\0") < 0) this.id = value;
      } else if (name === "retry" && isDigits(value)) {
        this.state.retry = core.min(+value, 0x7fffffff);
      }
    }
    dispatch() {
      const { state, origin, id } = this;
      state.lastEventId = id;
      const { hasData, type } = this;
      const data = stringSlice(this.data, 0, this.data.length - 1);
      this.data = this.type = "";
      this.hasData = false;
      if (!hasData) return;
      later(state, () => fire(state.source, need("kinds").MessageEvent, type === "" ? "message" : type, { __proto__: null, data, lastEventId: id, origin }));
    }
  }

  // The length of a byte order mark; negative while it cannot be told.
  function markLength(bytes) {
    const mark = [0xef, 0xbb, 0xbf];
    for (let i = 0; i < 3; i++) {
      if (i >= typedArrayLength(bytes)) return -1;
      if (bytes[i] !== mark[i]) return 0;
    }
    return 3;
  }

  function part(bytes, from, to) {
    const copy = new Bytes(to - from);
    typedArraySet(copy, new Bytes(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + from, to - from), 0);
    return copy;
  }

  function isDigits(text) {
    for (let i = 0; i < text.length; i++) {
      const unit = stringCharCodeAt(text, i);
      if (unit < 48 || unit > 57) return false;
    }
    return text !== "";
  }

  return { __proto__: null, EventSource };
}

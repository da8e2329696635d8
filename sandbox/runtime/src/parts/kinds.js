// The events of HTML that exist without a document: ErrorEvent (8.1.4.6), PromiseRejectionEvent (8.1.4.7), MessageEvent
// (9.1), https://html.spec.whatwg.org/.

export default function kinds(core) {
  const { Event, eventInternals: internals } = core.need("events");
  const { finish, isObject, requireArguments, required, SafeTypeError, toBoolean, toDictionary, toDOMString, toSequence, toUnsignedLong, toUSVString } = core;
  const anyValue = (value) => value;
  const init = (value, members) => toDictionary(value, members, "The init dictionary");

  // The order is that of the names, as Web IDL reads dictionaries.
  const errorInit = [
    ["colno", toUnsignedLong, 0], ["error", anyValue], ["filename", toUSVString, ""], ["lineno", toUnsignedLong, 0],
    ["message", toDOMString, ""],
  ];

  class ErrorEvent extends Event {
    #init;
    constructor(type, eventInitDict = undefined) {
      requireArguments("ErrorEvent", arguments.length, 1);
      super(type, eventInitDict);
      this.#init = init(eventInitDict, errorInit);
    }
    get message() { return this.#init.message; }
    get filename() { return this.#init.filename; }
    get lineno() { return this.#init.lineno; }
    get colno() { return this.#init.colno; }
    get error() { return this.#init.error; }
    static {
      // HTML, 8.1.8.1: what onerror of a global gets, undefined for an event that only is called "error".
      internals.errorArguments = (event) => {
        if (!(#init in event)) return undefined;
        const { message, filename, lineno, colno, error } = event.#init;
        return [message, filename, lineno, colno, error];
      };
    }
  }
  finish(ErrorEvent, { __proto__: null, name: "ErrorEvent" });

  const rejectionInit = [["promise", (value) => core.promiseResolve(value), required], ["reason", anyValue]];

  class PromiseRejectionEvent extends Event {
    #promise;
    #reason;
    constructor(type, eventInitDict) {
      requireArguments("PromiseRejectionEvent", arguments.length, 2);
      super(type, eventInitDict);
      const { promise, reason } = init(eventInitDict, rejectionInit);
      this.#promise = promise;
      this.#reason = reason;
    }
    get promise() { return this.#promise; }
    get reason() { return this.#reason; }
  }
  finish(PromiseRejectionEvent, { __proto__: null, name: "PromiseRejectionEvent" });

  // A port, or null: there are no windows and no service workers.
  function toSource(value, what) {
    if (value === null || isPort(value)) return value;
    throw new SafeTypeError(`${what} is not a MessagePort.`);
  }
  const isPort = (value) => isObject(value) && core.need("messaging").isPort(value);
  function toPort(value, what) {
    if (!isPort(value)) throw new SafeTypeError(`${what} holds a value that is not a MessagePort.`);
    return value;
  }
  const toPorts = (value, what) => toSequence(value, toPort, what);

  const messageInit = [
    ["data", anyValue, null], ["lastEventId", toDOMString, ""], ["origin", toUSVString, ""], ["ports", toPorts], ["source", toSource, null],
  ];

  class MessageEvent extends Event {
    #init;
    constructor(type, eventInitDict = undefined) {
      requireArguments("MessageEvent", arguments.length, 1);
      super(type, eventInitDict);
      this.#init = init(eventInitDict, messageInit);
      this.#init.ports = core.freeze(this.#init.ports ?? []);
    }
    get data() { return this.#init.data; }
    get origin() { return this.#init.origin; }
    get lastEventId() { return this.#init.lastEventId; }
    get source() { return this.#init.source; }
    get ports() { return this.#init.ports; }
    initMessageEvent(type, bubbles = false, cancelable = false, data = null, origin = "", lastEventId = "", source = null, ports = undefined) {
      this.#init;
      requireArguments("initMessageEvent' on 'MessageEvent", arguments.length, 1);
      type = toDOMString(type);
      bubbles = toBoolean(bubbles);
      cancelable = toBoolean(cancelable);
      const given = {
        __proto__: null, data, origin: toUSVString(origin), lastEventId: toDOMString(lastEventId),
        source: source === undefined ? null : toSource(source, "'source'"), ports: core.freeze(ports === undefined ? [] : toPorts(ports, "'ports'")),
      };
      if (internals.initialize(this, type, bubbles, cancelable)) this.#init = given;
    }
  }
  finish(MessageEvent, { __proto__: null, name: "MessageEvent" });

  return { __proto__: null, ErrorEvent, PromiseRejectionEvent, MessageEvent };
}

// Message channels (HTML, 9.4, https://html.spec.whatwg.org/#message-channels). Both ends are in one isolate: a message is
// cloned when it is posted, and delivered by a task of its own.

export default function messaging(core) {
  const { define, EventTarget, finish, illegalConstructor, isObject, list, makeException, need, push, requireArguments, symbolIterator } = core;
  const { Event, fire, handlerAttributes } = need("events");
  const token = {};

  class State {
    port;
    other = null; // the state of the entangled port
    queue = list(); // of {data, ports}
    next = 0; // in queue
    enabled = false;
    detached = false;
    constructor(port) {
      this.port = port;
    }
  }
  let stateOf, isPort;

  class MessagePort extends EventTarget {
    #state;
    constructor(key = undefined) {
      if (key !== token) throw illegalConstructor();
      super();
      this.#state = new State(this);
    }
    postMessage(message, options = undefined) {
      const state = this.#state;
      requireArguments("postMessage' on 'MessagePort", arguments.length, 1);
      post(state, message, listOf(options));
    }
    start() {
      enable(this.#state);
    }
    close() {
      close(this.#state);
    }
    static {
      stateOf = (port) => port.#state;
      isPort = (value) => isObject(value) && #state in value;
    }
  }
  finish(MessagePort, { __proto__: null, name: "MessagePort" });
  handlerAttributes(MessagePort, ["message", "messageerror", "close"], (port) => stateOf(port));

  // 9.4.4: the first time onmessage is set, the port is enabled.
  const { get, set } = core.getOwnPropertyDescriptor(MessagePort.prototype, "onmessage");
  core.defineProperty(MessagePort.prototype, "onmessage", {
    __proto__: null,
    get,
    set: core.getOwnPropertyDescriptor({
      set onmessage(value) {
        core.apply(set, this, [value]);
        enable(stateOf(this));
      },
    }, "onmessage").set,
    enumerable: true,
    configurable: true,
  });

  // The overloads: a sequence of objects, or a StructuredSerializeOptions.
  function listOf(options) {
    const method = isObject(options) ? options[symbolIterator] : undefined;
    const { toTransfer, transferOf } = need("clone");
    return method === undefined || method === null ? transferOf(options) : toTransfer(options, "The transfer list");
  }

  // "message port post message steps".
  function post(state, message, list) {
    let doomed = false;
    for (let i = 0; i < list.length; i++) {
      if (list[i] === state.port) throw makeException("A port cannot be transferred through itself.", "DataCloneError");
      if (state.other !== null && list[i] === state.other.port) doomed = true;
    }
    const target = state.other;
    const { value, twins } = need("clone").cloneWithTransfer(message, list);
    if (target === null || doomed) return;
    const ports = [];
    for (let i = 0; i < twins.length; i++) if (isPort(twins[i])) define(ports, ports.length, twins[i]);
    // The clone may have run code of the program that moved the other end.
    const receiver = state.other ?? target;
    push(receiver.queue, { __proto__: null, data: value, ports });
    if (receiver.enabled) schedule(receiver);
  }

  const schedule = (state) => core.startTimer(() => deliver(state), 0);

  function deliver(state) {
    const { queue, next } = state;
    if (next === queue.length) return; // the queue went with the port
    const message = queue[next];
    queue[state.next++] = undefined;
    if (state.next === queue.length) renew(state);
    fire(state.port, need("kinds").MessageEvent, "message", message);
  }

  function renew(state) {
    state.queue = list();
    state.next = 0;
  }

  function enable(state) {
    if (state.enabled || state.detached) return;
    state.enabled = true;
    for (let i = state.next; i < state.queue.length; i++) schedule(state);
  }

  function entangle(a, b) {
    a.other = b;
    b.other = a;
  }

  // 9.4.4 close(): messages that were posted before are still delivered; the other end learns of it.
  function close(state) {
    state.detached = true;
    const { other } = state;
    if (other === null) return;
    state.other = other.other = null;
    core.startTimer(() => fire(other.port, Event, "close"), 0);
  }

  // 9.4.4 "transfer steps": the queue goes along, and the new port is not enabled.
  function transfer(port) {
    const state = stateOf(port);
    const next = stateOf(new MessagePort(token));
    next.queue = state.queue;
    next.next = state.next;
    renew(state);
    if (state.other !== null) entangle(next, state.other);
    state.other = null;
    state.detached = true;
    return next.port;
  }

  class MessageChannel {
    #port1 = new MessagePort(token);
    #port2 = new MessagePort(token);
    constructor() {
      entangle(stateOf(this.#port1), stateOf(this.#port2));
    }
    get port1() { return this.#port1; }
    get port2() { return this.#port2; }
  }
  finish(MessageChannel, { __proto__: null, name: "MessageChannel" });

  return { __proto__: null, MessageChannel, MessagePort, isPort, transferPort: transfer, canTransferPort: (port) => !stateOf(port).detached };
}

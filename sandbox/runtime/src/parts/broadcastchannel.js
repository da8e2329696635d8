// BroadcastChannel (HTML, 9.5, https://html.spec.whatwg.org/#broadcasting-to-other-browsing-contexts) among the channels
// of one program. Like a port it clones a message when it is posted, and delivers it by a task for each receiver.

export default function broadcastchannel(core) {
  const { EventTarget, finish, list, makeException, need, push, requireArguments, startTimer, toDOMString } = core;
  const { fire, handlerAttributes } = need("events");

  let open = list(); // channels that are not closed, oldest first

  class BroadcastChannel extends EventTarget {
    #name;
    #closed = false;
    constructor(name) {
      requireArguments("BroadcastChannel", arguments.length, 1);
      super();
      this.#name = toDOMString(name);
      push(open, this);
    }
    get name() { return this.#name; }
    postMessage(message) {
      const name = this.#name;
      requireArguments("postMessage' on 'BroadcastChannel", arguments.length, 1);
      if (this.#closed) throw makeException("The channel is closed.", "InvalidStateError");
      const { cloneWithTransfer } = need("clone");
      const { value } = cloneWithTransfer(message, list());
      // Step 5 comes after the clone, during which getters of the program may have opened and closed channels.
      const receivers = list();
      for (let i = 0; i < open.length; i++) if (open[i] !== this && open[i].#name === name) push(receivers, open[i]);
      for (let i = 0; i < receivers.length; i++) {
        // The copy holds data alone, so that copying it again runs nothing of the program's.
        receivers[i].#deliver(i === receivers.length - 1 ? value : cloneWithTransfer(value, list()).value);
      }
    }
    #deliver(data) {
      startTimer(() => {
        if (!this.#closed) fire(this, need("kinds").MessageEvent, "message", { __proto__: null, data, origin: "null" });
      }, 0);
    }
    close() {
      if (this.#closed) return;
      this.#closed = true;
      const rest = list();
      for (let i = 0; i < open.length; i++) if (open[i] !== this) push(rest, open[i]);
      open = rest;
    }
    static {
      handlerAttributes(BroadcastChannel, ["message", "messageerror"], (channel) => channel.#name);
    }
  }
  finish(BroadcastChannel, { __proto__: null, name: "BroadcastChannel" });

  return { __proto__: null, BroadcastChannel };
}

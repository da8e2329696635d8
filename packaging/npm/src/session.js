// One session of the service: JSON-RPC 2.0 both ways, and the executions that run in it.

import { ExecutorError, refusal } from "./errors.js";
import { answerTo, failure, tell } from "./execution.js";
import { linkOf, lost, messageOf } from "./link.js";
import { cancelled, onAbort } from "./wait.js";

const over = "the execution has ended";
const ended = failure({ name: "Error", message: over });
const tooLarge = failure({ name: "RangeError", message: "the tool's result is too large" });

/** Opens a session on channels that open(signal) makes. settings are the checked options of the executor. */
export async function openSession(open, settings, signal) {
  const { maxMessageBytes, maxSessionAgeMs, cancelGraceMs } = settings;
  const began = Date.now();
  const requests = new Map(); // what settles them, by id
  const running = new Map(); // executions by their own id: [request, calls], the latter AbortControllers by number
  const retained = new Set();
  let lastId = 0;
  let retired = false; // it takes nothing new: the service drains it, or another one took its place
  let end;

  const link = linkOf(open, settings, receive, (error) => {
    for (const [, reject] of requests.values()) reject(error);
    session.ended = true;
    end();
  }, () => requests.size + retained.size);

  const session = {
    gone: new Promise((resolve) => (end = resolve)),

    /** Whether it takes further programs. */
    usable() {
      if (Date.now() - began > maxSessionAgeMs) session.retire();
      return !retired && !session.ended;
    },

    /**
     * Runs what the params of a method ask for, and resolves to what read makes of the outcome before the session may close. The
     * outcome says how a program that is being cancelled really ended, so it is waited for, but not for ever.
     */
    async execute(method, params, request, leave, read) {
      const { execution } = params;
      if (running.has(execution)) throw new ExecutorError("invalid_params", `execution ${execution} is running`, { field: "execution" });
      const calls = new Map();
      running.set(execution, [request, calls]);
      let timer;
      let off;
      return new Promise((resolve, reject) => {
        ask(method, params).then(read).finally(() => {
          off();
          clearTimeout(timer);
          running.delete(execution);
          for (const controller of calls.values()) controller.abort(new Error(over));
          closeWhenIdle();
        }).then(resolve, reject);
        off = onAbort(leave, () => {
          const error = cancelled(leave);
          link.send(messageOf({ method: "cancel", params: { execution, reason: error.message.slice(0, 500) } }));
          timer = setTimeout(reject, cancelGraceMs, error);
        });
      });
    },

    /** Notes that something is retained, or is not any more: the session stays for it. */
    keep(what, kept) {
      retained[kept ? "add" : "delete"](what);
      closeWhenIdle();
    },

    /** Gives up handles. Where that fails they have gone with the session. */
    release: (handles) => ask("handle.release", { handles }).catch(() => {}),

    /** Lets what runs end, and the session then. */
    retire() {
      retired = true;
      closeWhenIdle();
    },

    /** Ends the session; what runs is cancelled by the service. */
    close: link.close,
  };

  function closeWhenIdle() {
    if (retired && running.size + retained.size === 0) link.close();
  }

  function ask(method, params) {
    return new Promise((resolve, reject) => {
      if (session.ended) throw lost();
      const id = ++lastId;
      const text = messageOf({ id, method, params });
      if (!fits(text)) throw new ExecutorError("invalid_params", `the request has more than ${maxMessageBytes} bytes`);
      requests.set(id, [resolve, reject]);
      link.hold(true);
      link.send(text);
    });
  }

  const fits = (text) => text.length * 3 <= maxMessageBytes || new TextEncoder().encode(text).length <= maxMessageBytes;

  function receive({ id, method, params, result, error }) {
    if (typeof method === "string") return called(id, method, Object(params));
    const [resolve, reject] = requests.get(id) ?? []; // nobody may have asked
    requests.delete(id);
    link.hold(requests.size > 0);
    if (error) reject?.(refusal(error));
    else resolve?.(result);
  }

  async function called(id, method, { execution, ...told }) {
    const [request, calls] = running.get(execution) ?? [];
    const { call } = told;
    switch (method) {
      case "tool.call":
      case "fetch": {
        if (!calls || calls.has(call)) return answer(id, ended);
        const controller = new AbortController();
        const { signal } = controller;
        calls.set(call, controller);
        const made = await answerTo(request, method, told, { signal, execution, call });
        calls.delete(call);
        return signal.aborted || answer(id, made);
      }
      case "tool.cancel":
        return calls?.get(call)?.abort(new Error("nobody waits for this call any more"));
      case "execution.log":
        return tell(request?.onLog, told);
      case "execution.state":
        return tell(request?.onState, told);
      case "session.draining":
        return session.retire();
    }
    answer(id, { error: { code: -32601, message: `this client has no method ${method.slice(0, 100)}` } });
  }

  function answer(id, made) {
    if (id === undefined) return;
    let text;
    try {
      text = messageOf({ id, ...made });
    } catch {} // it is longer than a string can be
    link.send(text && fits(text) ? text : messageOf({ id, ...tooLarge }));
  }

  session.opened = await link.connect(signal);
  return session;
}

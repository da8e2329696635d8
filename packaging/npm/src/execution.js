// One call of execute: the params that are sent, and the answers to what the program asks of its host.

import { ending, ExecutorError, given } from "./errors.js";
import { answerFetch } from "./fetch.js";
import { toolOf, wireProviders } from "./providers.js";
import { decodeTree } from "./values/decode.js";
import { encodeTree } from "./values/encode.js";
import { newName } from "./wait.js";

const thrownCode = -32000;

export class Execution {
  /** What is answered in place of an answer that a message cannot hold. */
  static tooLarge = { error: { code: thrownCode, message: "the answer is too large", data: { name: "RangeError", message: "the tool's result is too large" } } };

  #request;
  #calls = new Map(); // AbortControllers by number
  #over = false;

  /** Makes the params of a checked request. Throws, or rejects, where the input cannot be encoded. */
  static async of(request) {
    const { input, providers, fetch, onLog, logs, network, signal, onState, execution, ...rest } = request;
    const params = { execution: execution ?? `x-${newName()}`, ...rest };
    if (input !== undefined) params.input = await encodeTree(input);
    if (providers !== undefined) params.providers = wireProviders(providers);
    if (network !== undefined || fetch !== undefined) params.network = network ?? "host";
    if (onLog !== undefined) params.logs = { stream: true };
    return new Execution(request, params);
  }

  /** The same for a call of a handle, whose host is that of the request; no Promise unless an argument has to be read. */
  static invoking(request, handle, method, args) {
    const { execution, limits, trace, onLog } = request;
    const make = (args) => {
      const params = given({ execution: execution ?? `x-${newName()}`, handle, method, limits, trace, args });
      if (onLog !== undefined) params.logs = { stream: true };
      return new Execution(request, params, "handle.invoke");
    };
    const trees = args.map((arg) => {
      try {
        return encodeTree(arg);
      } catch (error) {
        return Promise.reject(error);
      }
    });
    return trees.some((tree) => tree instanceof Promise) ? Promise.all(trees).then(make) : make(trees);
  }

  constructor(request, params, method = "execute") {
    this.#request = request;
    this.params = params;
    this.method = method;
  }

  get id() {
    return this.params.execution;
  }

  /** Answers a tool.call or a fetch: {result} or {error}, undefined when nobody waits any more. */
  async called(method, told) {
    if (this.#over || this.#calls.has(told.call)) return thrown(new Error("the execution has ended"));
    const controller = new AbortController();
    this.#calls.set(told.call, controller);
    const context = { signal: controller.signal, execution: this.id, call: told.call };
    let answer;
    try {
      answer = { result: await (method === "fetch" ? this.#fetch(told, context) : this.#tool(told, context)) };
    } catch (error) {
      answer = await thrown(error);
    }
    this.#calls.delete(told.call);
    return controller.signal.aborted ? undefined : answer;
  }

  // Up to its first await this runs when the message arrives, so that tools start in the order of the calls.
  async #tool({ provider, path, args }, context) {
    const tool = toolOf(this.#request.providers, provider, path, context);
    const value = await tool(...args.map((arg) => decodeTree(arg)));
    return { value: await encodeTree(value) };
  }

  async #fetch({ request }, context) {
    if (this.#request.fetch === undefined) throw new TypeError("fetch: the host does not answer requests");
    return { response: await answerFetch(this.#request.fetch, request, context) };
  }

  calledOff(call) {
    this.#calls.get(call)?.abort(new Error("nobody waits for this call any more"));
  }

  logged({ level, time, text, truncated }) {
    later(this.#request.onLog, { level, time, text, ...(truncated && { truncated }) });
  }

  stated({ state, position }) {
    later(this.#request.onState, { state, ...(position && { position }) });
  }

  /** Lets the program call: an execution that was not accepted begins again elsewhere. */
  begin() {
    this.#over = false;
  }

  /** Takes back the calls that are open. */
  end() {
    this.#over = true;
    for (const controller of this.#calls.values()) controller.abort(new Error("the execution has ended"));
  }
}

/**
 * What execute resolves to for an outcome; it throws the ExecutorError of one that is no value. retain(told) gives what
 * handles in the value are of.
 */
export function settle(outcome, retain) {
  let error;
  try {
    const { status, value, logs, stats } = outcome;
    if (!Array.isArray(logs) || (status === "ok") !== ("value" in outcome)) throw new TypeError("a member is missing");
    if (status === "ok" && outcome.retained) {
      const { retained, reader } = retain(outcome.retained);
      return { value: decodeTree(value, reader()), logs, stats, retained };
    }
    if (status === "ok") return { value: decodeTree(value), logs, stats };
    error = endingOf(outcome);
  } catch (fault) {
    throw new ExecutorError("internal", `the service sent an outcome that cannot be read: ${fault.message}`);
  }
  throw error;
}

function endingOf({ error, logs, calls = [], stats }) {
  const fields = { logs, calls, stats };
  if ("thrown" in error) fields.thrown = decodeTree(error.thrown);
  if ("cause" in error) fields.cause = decodeTree(error.cause);
  return ending(error, fields);
}

// A callback that throws is the program's own bug: it is reported as an uncaught error, and disturbs nothing here.
function later(callback, news) {
  if (callback === undefined) return;
  try {
    callback(news);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** The answer by which error is thrown in the program: an Error by name, message and code, anything else as it is. */
async function thrown(error) {
  if (error instanceof Error) {
    const data = { name: String(error.name), message: String(error.message) };
    if (typeof error.code === "string") data.code = error.code;
    return { error: { code: thrownCode, message: data.message, data } };
  }
  const data = { message: "the tool threw what is no error" };
  try {
    data.thrown = await encodeTree(error);
  } catch {
    // It cannot cross.
  }
  return { error: { code: thrownCode, message: data.message, data } };
}

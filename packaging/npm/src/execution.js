// What is asked of the service for one request of a caller, and what its program asks of its host in return.

import { ending, ExecutorError, refuse } from "./errors.js";
import { answerFetch } from "./fetch.js";
import { toolOf, wireProviders } from "./providers.js";
import { decodeTree } from "./values/decode.js";
import { encodeTree } from "./values/encode.js";
import { newName } from "./wait.js";

// common is what the params of every execution have: all that is not for here, known or not. Members that are undefined are
// not sent, and a function cannot be: an object is, so that the service refuses a listener of another name, or code that is no text.
function common({ onLog, onState, signal, ...asked }) {
  for (const key in asked) if (typeof asked[key] === "function") asked[key] = {};
  return { execution: `x-${newName()}`, ...asked, logs: onLog && { stream: true } };
}

/** The params of execute for a checked request. Rejects where the input cannot be encoded. */
export async function executeParams(request) {
  const { fetch, input, providers, network = fetch && "host", ...asked } = request;
  return {
    ...common(asked),
    input: input === undefined ? undefined : await encodeTree(input),
    providers: providers && wireProviders(providers),
    network,
  };
}

/** Those of handle.invoke, by a Promise only where an argument has to be read. */
export function invokeParams(options, handle, method, args) {
  const make = (args) => ({ ...common(options), handle, method, args });
  const trees = args.map((arg) => {
    try {
      return encodeTree(arg);
    } catch (error) {
      return Promise.reject(error);
    }
  });
  return trees.some((tree) => tree instanceof Promise) ? Promise.all(trees).then(make) : make(trees);
}

/**
 * Answers a tool.call or a fetch of the program of request: {result} or {error}. Up to its first await this runs when the
 * message arrives, so that tools start in the order of the calls.
 */
export async function answerTo(request, method, told, context) {
  try {
    if (method === "fetch") return { result: { response: await answerFetch(request.fetch, told.request, context) } };
    const tool = toolOf(request.providers, told.provider, told.path, context);
    return { result: { value: await encodeTree(await tool(...told.args.map((arg) => decodeTree(arg)))) } };
  } catch (error) {
    return thrown(error);
  }
}

/** Calls a listener of the caller. Where that throws it is reported as an uncaught error, and disturbs nothing here. */
export function tell(listener, news) {
  try {
    listener?.(news);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/**
 * What execute resolves to for an outcome; it throws the ExecutorError of one that is no value. retain(told) gives what
 * handles in the value are of.
 */
export function settle(outcome, retain) {
  let error;
  try {
    const { status, value, logs, stats, calls = [] } = outcome;
    if (!Array.isArray(logs) || (status === "ok") !== ("value" in outcome)) refuse("a member is missing");
    if (status === "ok") {
      const kept = outcome.retained && retain(outcome.retained);
      return { value: decodeTree(value, kept?.reader()), logs, stats, ...(kept && { retained: kept.retained }) };
    }
    error = ending(outcome.error, { logs, calls, stats });
    for (const key of ["thrown", "cause"]) if (key in outcome.error) error[key] = decodeTree(outcome.error[key]);
  } catch (fault) {
    throw new ExecutorError("internal", `the service sent an outcome that cannot be read: ${fault.message}`);
  }
  throw error;
}

/** The answer by which data, of an error, is thrown in the program. */
export const failure = (data) => ({ error: { code: -32000, message: data.message, data } });

// thrown is the answer by which error is: an Error by name, message and code, anything else as it is. It never rejects, whatever
// a tool throws.
async function thrown(error) {
  const data = { message: "the tool threw what is no error" };
  try {
    if (error instanceof Error) {
      const { name, message, code } = error;
      return failure({ name: String(name), message: String(message), code: typeof code === "string" ? code : undefined });
    }
    data.thrown = await encodeTree(error);
  } catch {} // it cannot be read, or cannot cross
  return failure(data);
}

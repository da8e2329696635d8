// The closed set of error types: ipc/protocol/errors.go in the repository is the list, and a test compares the two.

import { entriesOf, fromEntries } from "./values/walk.js";

// By the first of their JSON-RPC codes, which count down. Those of the first row come of programs that ran. After those with a
// star the same request may succeed later.
const taxonomy = [
  [-32010, "exception syntax module cpu_timeout wall_timeout total_timeout memory_limit result_too_large result_unserializable tool_limit cancelled worker_crashed* deadlock"],
  [-32602, "invalid_params"],
  [-32041, "invalid_code invalid_provider overloaded* queue_timeout* draining* maintenance* unauthorized unsupported_protocol session_limit* handle_unknown session_unknown"],
  [-32603, "internal*"],
  [-32700, "parse_error"],
  [-32600, "invalid_request unknown_method"],
];

/** All types with what is fixed for each, in the order of the protocol. */
export const errorTypes = Object.freeze(taxonomy.flatMap(([first, types], row) => types.split(" ").map((word, i) => Object.freeze({
  type: word.replace("*", ""), code: first - i, ran: row === 0, retryable: word.endsWith("*"),
}))));

const find = (told) => errorTypes.find(({ type, code }) => type === told || code === told);
const infoOf = (type, code) => find(type) ?? find(code) ?? find("internal");

/**
 * Why a program ended badly, or was not run at all. Decide by `type`, never by text. With `ran` it has `logs`, `calls` and
 * `stats` of the execution.
 */
export class ExecutorError extends Error {
  constructor(type, message, fields = {}) {
    super(message);
    Object.assign(this, infoOf(type), { logs: [] }, fields);
  }

  get name() {
    return "ExecutorError";
  }
}

/** Throws a TypeError. */
export function refuse(why) {
  throw new TypeError(why);
}

/** The members of object that are not undefined. */
export const given = (object) => fromEntries(entriesOf(Object(object)).filter(([, value]) => value !== undefined));

const textOf = (value, otherwise) => (typeof value === "string" ? value : otherwise);

// known takes of a plain object what the protocol says.
const known = ({ name, stack, position, reason, field, retryAfterMs }) => given({
  thrownName: name, programStack: stack, position, reason, field, retryAfterMs: retryAfterMs || undefined,
});

/** The error that an answer {code, message, data} of JSON-RPC, or of the HTTP layer, stands for; "internal" for an unknown code. */
export function refusal({ code, message, data }) {
  const told = Object(data);
  const { type } = infoOf(told.type, code);
  return new ExecutorError(type, textOf(message, type), known(told));
}

/** The error in an outcome. Values in it are decoded by the caller. */
export function ending(error, fields) {
  return new ExecutorError(error.type, textOf(error.message, ""), { ...known(error), ...fields, ran: true });
}

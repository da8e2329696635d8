// The closed set of error types: ipc/protocol/errors.go in the repository is the list, and a test compares the two.

// type: JSON-RPC code, whether the program ran, whether the same request may succeed later.
const taxonomy = {
  exception: [-32010, true, false],
  syntax: [-32011, true, false],
  module: [-32012, true, false],
  cpu_timeout: [-32013, true, false],
  wall_timeout: [-32014, true, false],
  total_timeout: [-32015, true, false],
  memory_limit: [-32016, true, false],
  result_too_large: [-32017, true, false],
  result_unserializable: [-32018, true, false],
  tool_limit: [-32019, true, false],
  cancelled: [-32020, true, false],
  worker_crashed: [-32021, true, true],
  deadlock: [-32022, true, false],
  invalid_params: [-32602, false, false],
  invalid_code: [-32041, false, false],
  invalid_provider: [-32042, false, false],
  overloaded: [-32043, false, true],
  queue_timeout: [-32044, false, true],
  draining: [-32045, false, true],
  maintenance: [-32046, false, true],
  unauthorized: [-32047, false, false],
  unsupported_protocol: [-32048, false, false],
  session_limit: [-32049, false, true],
  handle_unknown: [-32050, false, false],
  session_unknown: [-32051, false, false],
  internal: [-32603, false, true],
  parse_error: [-32700, false, false],
  invalid_request: [-32600, false, false],
  unknown_method: [-32601, false, false],
};

/** All types with what is fixed for each, in the order of the protocol. */
export const errorTypes = Object.freeze(
  Object.entries(taxonomy).map(([type, [code, ran, retryable]]) => Object.freeze({ type, code, ran, retryable })),
);

const infoOf = (type) => (Object.hasOwn(taxonomy, type) ? taxonomy[type] : undefined);

/** The type that a JSON-RPC code stands for, "internal" for an unknown code. */
const typeOf = (code) => errorTypes.find((info) => info.code === code)?.type ?? "internal";

/**
 * Why a program ended badly, or was not run at all. Decide by `type`, never by text. With `ran` it has `logs`, `calls` and
 * `stats` of the execution.
 */
export class ExecutorError extends Error {
  constructor(type, message, fields = {}) {
    super(message);
    const [code, ran, retryable] = infoOf(type) ?? taxonomy.internal;
    Object.assign(this, { type, code, ran, retryable, logs: [] }, fields);
  }

  get name() {
    return "ExecutorError";
  }
}

const textOf = (value) => (typeof value === "string" ? value : undefined);

// known takes of a plain object what the protocol says, and drops what is undefined.
function known(told) {
  const { name, stack, position, reason, field, retryAfterMs } = told;
  const fields = {
    thrownName: textOf(name),
    programStack: textOf(stack),
    position: position !== null && typeof position === "object" ? position : undefined,
    reason: textOf(reason),
    field: textOf(field),
    retryAfterMs: retryAfterMs > 0 ? retryAfterMs : undefined,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The error that an answer {code, message, data} of JSON-RPC, or of the HTTP layer, stands for. */
export function refusal({ code, message, data }) {
  const told = data !== null && typeof data === "object" ? data : {};
  const type = infoOf(told.type) ? told.type : typeOf(code);
  return new ExecutorError(type, textOf(message) ?? type, known(told));
}

/** The error in an outcome. Values in it are decoded by the caller. */
export function ending(error, fields) {
  const type = infoOf(error.type) ? error.type : "internal";
  return new ExecutorError(type, textOf(error.message) ?? "", { ...known(error), ...fields, ran: true });
}

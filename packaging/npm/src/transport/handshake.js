import { ExecutorError, refusal } from "../errors.js";

/** The typed error in an answer to the handshake that is not 101. */
export function refusalOf(status, text) {
  try {
    const { error } = JSON.parse(text);
    if (typeof error.type === "string") return refusal({ message: error.message, data: error });
  } catch {
    // Not the service's: a proxy's, or another server's.
  }
  return new ExecutorError("internal", `the service answered the handshake with HTTP status ${status}`);
}

// What the ways to the service have in common before there is a channel.

import { ExecutorError, refusal } from "../errors.js";

export const subprotocol = "executor.v1";

/** What to ask for a WebSocket with, beside the headers that carry the token. */
export const upgrading = { Upgrade: "websocket", "Sec-WebSocket-Protocol": subprotocol };

/** Why an answer is refused that opens a WebSocket of another kind. */
export const foreign = `it does not speak ${subprotocol}`;

/** The error of an answer that is not 101: the service's own, where told is what its JSON says. */
export function refusalOf(status, told) {
  const error = told?.error;
  if (error?.type) return refusal({ message: error.message, data: error });
  return new ExecutorError("internal", `the service answered the handshake with HTTP status ${status}`);
}

/** The error of a connection that cannot be made. */
export const unreachable = ({ text }, why) => new ExecutorError("internal", `cannot connect to ${text}: ${why}`);

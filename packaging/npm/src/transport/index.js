// Which way to the service this runtime has. Each returns a channel:
//
//	send(text)           a text frame
//	close(code, reason)  a close frame; onClose follows
//	hold(busy)           whether an open channel keeps the process alive
//	onMessage(text), onClose(code, reason)   set by the owner before anything else happens
//
// onClose comes once, and nothing after it. It comes too when the connection just ends.

import { ExecutorError } from "../errors.js";
import { parseAddress } from "./address.js";
import { openStream, streams } from "./stream.js";
import { openUpgrade } from "./upgrade.js";
import { openSocket } from "./web.js";

export const subprotocol = "executor.v1";

const inWorkerd = globalThis.navigator?.userAgent === "Cloudflare-Workers";

/** Checks the options of a RemoteExecutor and returns open(signal), which resolves to a channel. */
export function transportOf({ url, token, tls, webSocket, maxMessageBytes }) {
  const address = parseAddress(url);
  const refuse = (why) => {
    throw new TypeError(why);
  };
  const noPath = (what) => address.path !== undefined && refuse(`${what} cannot go over a unix socket`);
  if (webSocket !== undefined) {
    noPath("a webSocket of your own");
    return (signal) => openSocket(webSocket, address, token, signal);
  }
  if (inWorkerd) {
    noPath("workerd");
    return (signal) => openUpgrade(address, token, signal);
  }
  if (streams()) return (signal) => openStream(address, { token, tls, maxMessageBytes }, signal);
  noPath("this runtime");
  if (token !== undefined) refuse("a browser cannot send a token: let a proxy add it, or give a webSocket of your own");
  if (globalThis.WebSocket === undefined) refuse("this runtime has no WebSocket: give one as webSocket");
  return (signal) => openSocket(globalThis.WebSocket, address, undefined, signal);
}

/** The error of a connection that cannot be made. */
export function unreachable(address, why) {
  return new ExecutorError("internal", `cannot connect to ${address.text}: ${why}`, { unreachable: true });
}

// Which way to the service this runtime has. Each returns a channel:
//
//	send(text)           a text frame
//	close(code, reason)  a close frame; gone follows
//	hold(busy)           whether an open channel keeps the process alive
//	take(text), gone(code, reason)   set by the owner before anything else happens, or unset to hear nothing
//
// gone comes once, and nothing after it. It comes too when the connection just ends.

import { refuse } from "../errors.js";
import { parseAddress } from "./address.js";
import { openStream, streams } from "./stream.js";
import { openUpgrade } from "./upgrade.js";
import { openSocket } from "./web.js";

const inWorkerd = globalThis.navigator?.userAgent === "Cloudflare-Workers";

/** Checks the options of a RemoteExecutor and returns open(signal), which resolves to a channel. */
export function transportOf({ url, token, tls, webSocket, maxMessageBytes }) {
  const address = parseAddress(url);
  const secret = token !== undefined && { Authorization: `Bearer ${token}` };
  if (/[^ -~]/.test(token)) refuse("a token has printable ASCII characters only");
  const own = !webSocket;
  if (own && !inWorkerd && streams) return (signal) => openStream(address, secret, tls, 2 * maxMessageBytes, signal);
  if (address.path) refuse("a unix socket needs Node, Deno or Bun, and no webSocket of your own");
  if (own && inWorkerd) return (signal) => openUpgrade(address, secret, signal);
  if (own && secret) refuse("a browser cannot send a token: let a proxy add it, or give a webSocket of your own");
  const WebSocket = webSocket ?? globalThis.WebSocket ?? refuse("this runtime has no WebSocket: give one as webSocket");
  return (signal) => openSocket(WebSocket, address, secret, signal);
}

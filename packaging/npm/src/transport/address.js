import { refuse } from "../errors.js";
import { stringify } from "../values/json.js";

const sessionPath = "/v1/session";
const remote = /^(tcp:\/\/[^/?#@]+:\d+\/?|wss?:\/\/[^/?#@]+(\/[^?#]*)?)$/;

/**
 * Reads unix:/path, tcp://host:port, ws://host[:port] or wss://host[:port], the last two with an optional path before
 * /v1/session. Gives {text, path, url}: path is that of a unix socket, and url what is asked for, which begins with ws.
 */
export function parseAddress(given) {
  const text = String(given);
  const path = text.startsWith("unix:") ? text.slice(5).replace(/^\/\//, "") : undefined;
  const plain = path === undefined ? text.replace(/^tcp/, "ws") : "ws://localhost";
  if (path === undefined ? !remote.test(text) || !URL.canParse(plain) : path[0] !== "/") {
    refuse(`cannot use address ${stringify(text)}: it must be unix:/path, tcp://host:port, ws://host or wss://host`);
  }
  const url = new URL(plain);
  const base = url.pathname.replace(/\/$/, "");
  url.pathname = base.endsWith(sessionPath) ? base : base + sessionPath;
  return { text, path, url };
}

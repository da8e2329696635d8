const sessionPath = "/v1/session";

/**
 * Reads unix:/path, tcp://host:port, ws://host[:port] or wss://host[:port], the last two with an optional path before
 * /v1/session. Gives {text, path} of a unix socket or {text, url} of a WebSocket.
 */
export function parseAddress(given) {
  const text = String(given);
  const refuse = (why) => {
    throw new TypeError(`cannot use address ${JSON.stringify(text)}: ${why}`);
  };
  if (text.startsWith("unix:")) {
    const path = text.slice(5).replace(/^\/\//, "");
    return path.startsWith("/") ? { text, path } : refuse("the path after unix: must be absolute");
  }
  if (!/^(tcp|ws|wss):\/\//.test(text)) refuse("it must begin with unix:, tcp://, ws:// or wss://");
  const tcp = text.startsWith("tcp:");
  const plain = tcp ? "ws" + text.slice(3) : text;
  if (!URL.canParse(plain)) refuse("it is no URL");
  const url = new URL(plain);
  if (url.hostname === "" || url.username !== "" || url.search !== "" || url.hash !== "") refuse("it must have a host and a port and no more");
  if (tcp && (!/:\d+\/?$/.test(text) || url.pathname !== "/")) refuse("a tcp address is a host and a port");
  const base = url.pathname.replace(/\/$/, "");
  url.pathname = base.endsWith(sessionPath) ? base : base + sessionPath;
  return { text, url };
}

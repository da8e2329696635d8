// A WebSocket of the runtime, or one that the caller gives.

import { late, onAbort } from "../wait.js";
import { foreign, subprotocol, unreachable } from "./handshake.js";

/** Opens new WebSocket(url). A class that is not of the web may take a third argument with headers, as ws has it. */
export function openSocket(WebSocket, address, secret, signal) {
  const socket = new WebSocket(address.url.href, [subprotocol], ...(secret ? [{ headers: secret }] : []));
  const channel = channelOf(socket);
  return new Promise((resolve, reject) => {
    const fail = (why) => {
      socket.close();
      reject(unreachable(address, why));
    };
    const off = onAbort(signal, () => fail(late));
    channel.gone = (code, reason) => {
      off();
      fail(reason || `the handshake failed (${code})`);
    };
    socket.addEventListener("open", () => {
      off();
      if (socket.protocol === subprotocol) resolve(channel);
      else fail(foreign);
    });
  });
}

/** The channel over an object that is like a WebSocket. */
export function channelOf(socket) {
  const channel = {
    send: (text) => socket.send(text),
    // A page may say that all is well, and nothing else of the protocol's.
    close: (code) => (code === 1000 ? socket.close(code) : socket.close()),
    hold() {},
  };
  let open = true;
  const end = (code, reason) => {
    if (open) channel.gone?.(code, reason);
    open = false;
  };
  socket.addEventListener("message", ({ data }) => {
    if (!open) return;
    if (typeof data === "string") return channel.take?.(data);
    socket.close();
    end(1003, "messages are text");
  });
  socket.addEventListener("close", ({ code, reason }) => end(code, reason));
  socket.addEventListener("error", () => end(1006, ""));
  return channel;
}

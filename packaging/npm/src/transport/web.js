// A WebSocket of the runtime, or one that the caller gives.

import { onAbort } from "../wait.js";
import { subprotocol, unreachable } from "./index.js";

/** Opens new WebSocket(url). A class that is not of the web may take a third argument with headers, as ws has it. */
export function openSocket(WebSocket, address, token, signal) {
  const extra = token === undefined ? [] : [{ headers: { Authorization: `Bearer ${token}` } }];
  const socket = new WebSocket(address.url.href, [subprotocol], ...extra);
  return opened(socket, address, signal);
}

function opened(socket, address, signal) {
  return new Promise((resolve, reject) => {
    const channel = channelOf(socket);
    const fail = (why) => reject(unreachable(address, why));
    const refuse = (why) => {
      socket.close();
      fail(why);
    };
    const off = onAbort(signal, () => refuse("it takes too long"));
    channel.onClose = (code, reason) => {
      off();
      fail(reason || `the handshake failed (${code})`);
    };
    socket.addEventListener("open", () => {
      off();
      if (socket.protocol === subprotocol) resolve(channel);
      else refuse(`it does not speak ${subprotocol}`);
    });
  });
}

/** The channel over an object that is like a WebSocket. */
export function channelOf(socket) {
  const channel = {
    onMessage() {},
    onClose() {},
    send: (text) => socket.send(text),
    close: (code, reason) => socket.close(code, reason),
    hold() {},
  };
  let open = true;
  const end = (code, reason) => {
    if (!open) return;
    open = false;
    channel.onClose(code, reason);
  };
  socket.addEventListener("message", ({ data }) => {
    if (!open) return;
    if (typeof data === "string") return channel.onMessage(data);
    socket.close(1003, "messages are text");
    end(1003, "the service sent a binary message");
  });
  socket.addEventListener("close", ({ code, reason }) => end(code, reason));
  socket.addEventListener("error", () => end(1006, ""));
  return channel;
}

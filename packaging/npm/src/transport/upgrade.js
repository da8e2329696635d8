// A WebSocket by fetch, as workerd has it: unlike its WebSocket class, this sends headers and shows refusals.

import { refusalOf, unreachable, upgrading } from "./handshake.js";
import { channelOf } from "./web.js";

export async function openUpgrade(address, secret, signal) {
  const url = address.url.href.replace("ws", "http");
  const response = await fetch(url, { headers: { ...upgrading, ...secret }, signal }).catch((error) => {
    throw unreachable(address, error.message);
  });
  const socket = response.webSocket;
  if (!socket) throw refusalOf(response.status, await response.json().catch(() => {}));
  const channel = channelOf(socket);
  socket.accept();
  return channel;
}

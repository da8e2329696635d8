// A WebSocket by fetch, as workerd has it: unlike its WebSocket class, this sends headers and shows refusals.

import { refusalOf } from "./handshake.js";
import { subprotocol, unreachable } from "./index.js";
import { channelOf } from "./web.js";

export async function openUpgrade(address, token, signal) {
  const headers = { Upgrade: "websocket", "Sec-WebSocket-Protocol": subprotocol };
  if (token !== undefined) headers.Authorization = `Bearer ${token}`;
  const url = address.url.href.replace(/^ws/, "http");
  let response;
  try {
    response = await fetch(url, { headers, signal });
  } catch (error) {
    throw unreachable(address, error.message);
  }
  const socket = response.webSocket;
  if (!socket) throw refusalOf(response.status, await response.text());
  const channel = channelOf(socket);
  socket.accept();
  return channel;
}

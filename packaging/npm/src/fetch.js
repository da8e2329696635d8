// HTTP exchanges that a program asks of its host (network "host").

import { fromBase64, toBase64 } from "./values/base64.js";

/** Has handle(request, context) answer one request of the protocol, and gives its response as the protocol has it. */
export async function answerFetch(handle, asked, context) {
  const init = { method: asked.method, headers: asked.headers, redirect: "manual", signal: context.signal };
  if (asked.body !== null) init.body = fromBase64(asked.body["@bytes"]);
  const response = await handle(new Request(asked.url, init), context);
  if (!(response instanceof Response)) throw new TypeError("fetch: the host answered with what is no Response");
  const { status, statusText, url } = response;
  const body = response.body === null ? null : { "@bytes": toBase64(new Uint8Array(await response.arrayBuffer())) };
  return { status, statusText, url, headers: headersOf(response), body };
}

// headersOf leaves out what was true of the body only until the runtime decoded it.
function headersOf(response) {
  const decoded = response.url !== "" && response.headers.has("content-encoding");
  return [...response.headers].filter(([name]) => !decoded || (name !== "content-encoding" && name !== "content-length"));
}

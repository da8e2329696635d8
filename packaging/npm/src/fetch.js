// HTTP exchanges that a program asks of its host (network "host").

import { encodeTree } from "./values/encode.js";
import { readRequest } from "./values/tags.js";

/** Has handle(request, context) answer one request of the protocol, and gives its response as the protocol has it. */
export async function answerFetch(handle, { method, url, headers, body }, context) {
  const request = readRequest({ method, url, headers, body }, { redirect: "manual", signal: context.signal });
  const response = await handle(request, context);
  if (!(response instanceof Response)) throw new TypeError("fetch: the host answered with what is no Response");
  const { "@response": told } = await encodeTree(response);
  // What was true of the body only until the runtime decoded it is left out.
  const stale = told.url !== "" && response.headers.has("content-encoding") ? /^content-(encoding|length)$/ : /^$/;
  return { status: told.status, statusText: told.statusText, url: told.url, body: told.body, headers: told.headers.filter(([name]) => !stale.test(name)) };
}

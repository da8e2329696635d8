// HTTP exchanges that a program asks of its host (network "host").

import { refuse } from "./errors.js";
import { encodeTree } from "./values/encode.js";
import { readRequest } from "./values/tags.js";

/** Has handle(request, context) answer one request of the protocol, and gives its response as the protocol has it. */
export async function answerFetch(handle, { method, url, headers, body }, context) {
  handle ?? refuse("fetch: the host does not answer requests");
  const request = readRequest({ method, url, headers, body }, { redirect: "manual", signal: context.signal });
  const response = await handle(request, context);
  if (!(response instanceof Response)) refuse("fetch: the host answered with what is no Response");
  const { "@response": { type, redirected, ...told } } = await encodeTree(response); // an exchange has neither
  // What was true of the body only until the runtime decoded it is left out.
  if (told.url !== "" && response.headers.has("content-encoding")) {
    told.headers = told.headers.filter(([name]) => !/^content-(encoding|length)$/.test(name));
  }
  return told;
}

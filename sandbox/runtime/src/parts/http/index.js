// Headers, Request and Response (Fetch, 5: https://fetch.spec.whatwg.org/#fetch-api) as the minimum common API reads them:
// no origin, no CORS, no cookies, no cache, no forbidden headers.

import { exportLater, once } from "../../once.js";
import { makeBodies } from "./body.js";
import { makeHeaders } from "./headers.js";
import { makeMime } from "./mime.js";
import { makeRequests } from "./request.js";
import { makeResponses } from "./response.js";
import { makeValues } from "./values.js";

export default function http(core) {
  // A program has no address; see the worker's configuration for the exception of tests.
  let base = null;
  const baseURL = () => (core.base ? (base ??= core.need("urls").parse(core.base, null)) : null);

  const headers = makeHeaders(core);
  const mime = makeMime(core, headers);
  const bodies = makeBodies(core, headers, mime);
  const requests = once(() => makeRequests(core, headers, bodies, baseURL));
  const responses = once(() => makeResponses(core, headers, bodies, baseURL));

  const exports = {
    __proto__: null,
    Headers: headers.Headers,
    // For the part "fetch".
    headers, mime, bodies, requests, responses, baseURL,
    // For FileReader and EventSource.
    parameterOfType: bodies.parameterOfType, mimeOf: bodies.mimeOf,
    // For values that cross to the host.
    isHeaders: headers.isHeaders, headerSlots: headers.slotsOf, sortedPairs: headers.sortedPairs,
    isRequest: (value) => requests().isRequest(value), requestOf: (value) => requests().requestOf(value),
    isResponse: (value) => responses().isResponse(value), responseOf: (value) => responses().responseOf(value),
    ...makeValues(core, { headers, bodies, requests, responses }),
  };
  exportLater(exports, "Request", () => requests().Request);
  exportLater(exports, "Response", () => responses().Response);
  return exports;
}

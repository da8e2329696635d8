// The Fetch Standard (https://fetch.spec.whatwg.org/) as the minimum common API reads it: no origin, no CORS, no cookies,
// no cache, no forbidden headers. The network itself is behind send().

import { makeBodies } from "./body.js";
import { makeDataURLs } from "./data.js";
import { makeHeaders } from "./headers.js";
import { makeMime } from "./mime.js";
import { makeNetwork } from "./network.js";
import { makeRequests } from "./request.js";
import { makeResponses } from "./response.js";
import { makeValues } from "./values.js";

export default function fetchPart(core) {
  const { SafePromise, SafeTypeError, stringIndexOf, stringSlice, stringStartsWith, requireArguments, promiseReject } = core;
  // A program has no address; see the worker's configuration for the exception of tests.
  let base = null;
  const baseURL = () => (core.base ? (base ??= core.need("url").parse(core.base, null)) : null);

  const headers = makeHeaders(core);
  const mime = makeMime(core, headers);
  const bodies = makeBodies(core, headers, mime);
  const { Request, isRequest, requestOf, signalOf } = makeRequests(core, headers, bodies, baseURL);
  const { Response, responseOf, isResponse, newSlots, makeResponse } = makeResponses(core, headers, bodies, baseURL);
  const readData = makeDataURLs(core, mime);
  const { start, checkNetwork } = makeNetwork(core, { headers, bodies, newSlots });

  const withoutFragment = (url) => {
    const at = stringIndexOf(url, "#");
    return at < 0 ? url : stringSlice(url, 0, at);
  };

  function respond(url, status, statusText, bytes, type) {
    const slots = newSlots(status, statusText, "basic", url);
    slots.body = new bodies.Body(bytes, undefined);
    if (type !== "") headers.add(slots.headers, "Content-Type", type);
    slots.headers.guard = "immutable";
    return slots;
  }

  function fromData(request) {
    const data = readData(withoutFragment(request.url));
    if (data === null) throw new SafeTypeError("fetch: the data: URL is malformed.");
    return respond(withoutFragment(request.url), 200, "OK", data.bytes, data.type);
  }

  // Fetch, 4.2 "scheme fetch" for blob:.
  function fromBlob(request) {
    const url = withoutFragment(request.url);
    const blobs = core.need("blob");
    const blob = request.method === "GET" ? request.blob ?? blobs.resolveObjectURL(url) : undefined;
    if (blob === undefined) throw new SafeTypeError("fetch: the blob: URL names no blob, or the method is not GET.");
    const bytes = blobs.bytesOfBlob(blob);
    const slots = respond(url, 200, "OK", bytes, blobs.typeOfBlob(blob));
    headers.add(slots.headers, "Content-Length", `${core.typedArrayByteLength(bytes)}`);
    return slots;
  }

  function schemeFetch(request) {
    const { url } = request;
    if (stringStartsWith(url, "data:")) return fromData(request);
    if (stringStartsWith(url, "blob:")) return fromBlob(request);
    throw new SafeTypeError(`fetch: the scheme of ${url} is not supported.`);
  }

  function overNetwork(request, signal) {
    checkNetwork(request.url, "fetch");
    const events = core.need("abort");
    return new SafePromise((resolve, reject) => {
      let ended = false;
      let abort;
      const onAbort = () => {
        const reason = events.signalReason(signal);
        reject(reason);
        abort(reason);
      };
      const onEnd = () => {
        ended = true;
        events.removeAbortAlgorithm(signal, onAbort);
      };
      abort = start(request, (slots) => resolve(makeResponse(slots)), reject, onEnd);
      if (events.isAborted(signal)) onAbort(); // by the stream of the request's body
      else if (!ended) events.addAbortAlgorithm(signal, onAbort);
    });
  }

  const operations = {
    fetch(input, init = {}) {
      try {
        requireArguments("fetch", arguments.length, 1);
        const request = requestOf(new Request(input, init));
        const signal = signalOf(request);
        const events = core.need("abort");
        if (events.isAborted(signal)) return promiseReject(events.signalReason(signal));
        const { url } = request;
        if (stringStartsWith(url, "http:") || stringStartsWith(url, "https:")) return overNetwork(request, signal);
        return new SafePromise((resolve) => resolve(makeResponse(schemeFetch(request))));
      } catch (error) {
        return promiseReject(error);
      }
    },
  };

  // ---- WebAssembly Web API (https://webassembly.github.io/spec/web-api/)

  const { promiseThen } = core;

  // "compile a potential WebAssembly response": the promise of its bytes.
  function bytesOfSource(source) {
    return promiseThen(new SafePromise((resolve) => resolve(source)), (response) => {
      if (!isResponse(response)) throw new SafeTypeError("The source is not a Response or the promise of one.");
      const slots = responseOf(response);
      const type = headers.get(slots.headers, "content-type");
      if (type === null || core.stringToLowerCase(headers.normalize(type)) !== "application/wasm") {
        throw new SafeTypeError("The response's Content-Type is not application/wasm.");
      }
      if (slots.status < 200 || slots.status > 299) throw new SafeTypeError(`The response's status ${slots.status} is not a success.`);
      if (slots.body !== null && slots.body.isUnusable()) throw new SafeTypeError("The response's body was used already, or is locked.");
      if (slots.body === null) return new core.Bytes(0);
      return new SafePromise((resolve, reject) => slots.body.consume(resolve, reject));
    });
  }

  return {
    __proto__: null,
    Headers: headers.Headers, Request, Response, fetch: operations.fetch, bytesOfSource,
    parameterOfType: bodies.parameterOfType, // for FileReader
    // For EventSource.
    baseURL, checkNetwork, requestOf, open: start, mimeOf: bodies.mimeOf, addHeader: (slots, name, value) => headers.add(slots.headers, name, value),
    // For values that cross to the host.
    isHeaders: headers.isHeaders, headerSlots: headers.slotsOf, sortedPairs: headers.sortedPairs, isRequest, isResponse, responseOf,
    ...makeValues(core, { headers, bodies, Request, requestOf, newSlots, makeResponse }),
  };
}

// fetch() (Fetch, 5.6: https://fetch.spec.whatwg.org/#fetch-method) and what goes over the network or is at hand.

import { once } from "../../once.js";
import { makeBlobs } from "./blobs.js";
import { makeClients } from "./client.js";
import { makeDataURLs } from "./data.js";
import { makeIntegrity } from "./integrity.js";
import { makeNetwork } from "./network.js";

export default function fetchPart(core) {
  const { requireArguments, promiseReject } = core;
  // Requests and responses, and all that works on them, come when something is fetched.
  const fetching = once(() => makeFetching(core, core.need("http")));

  const operations = {
    fetch(input, init = undefined) {
      try {
        requireArguments("fetch", arguments.length, 1);
        return fetching().start(input, init);
      } catch (error) {
        return promiseReject(error);
      }
    },
  };

  return {
    __proto__: null,
    fetch: operations.fetch,
    bytesOfSource: (source) => fetching().bytesOfSource(source),
    // For EventSource.
    checkNetwork: (address, what) => fetching().checkNetwork(address, what),
    open: (slots, onResponse, onFailure) => fetching().open(slots, onResponse, onFailure),
    addHeader: (slots, name, value) => core.need("http").headers.add(slots.headers, name, value),
  };
}

function makeFetching(core, { headers, mime, bodies, requests, responses, baseURL }) {
  const { promiseThen, SafePromise, SafeTypeError, stringIndexOf, stringSlice, stringStartsWith, promiseReject } = core;
  const { Request, requestOf, signalOf } = requests();
  const { responseOf, isResponse, newSlots, makeResponse } = responses();
  const readData = makeDataURLs(core, mime);
  const fromBlob = makeBlobs(core, headers, respond);
  const matches = makeIntegrity(core);
  const { start: open, checkNetwork } = makeNetwork(core, { headers, bodies, clients: makeClients(core, headers, baseURL), newSlots });

  const withoutFragment = (url) => {
    const at = stringIndexOf(url, "#");
    return at < 0 ? url : stringSlice(url, 0, at);
  };

  function respond(url, status, statusText, bytes, lines) {
    const slots = newSlots(status, statusText, "basic", url);
    slots.body = new bodies.Body(bytes, undefined);
    for (let i = 0; i < lines.length; i++) headers.add(slots.headers, lines[i][0], lines[i][1]);
    slots.headers.guard = "immutable";
    return slots;
  }

  function fromData(request, url) {
    const data = readData(url);
    if (data === null) throw new SafeTypeError("fetch: the data: URL is malformed.");
    const slots = respond(url, 200, "OK", data.bytes, [["Content-Type", data.type]]);
    if (request.method === "HEAD") slots.body = null;
    return slots;
  }

  // Fetch, 4.1 "main fetch": the body must be what the request's integrity says. onResponse(slots) or onFailure(error).
  function verify(request, slots, onResponse, onFailure) {
    if (request.integrity === "") return onResponse(slots);
    const check = (bytes) => {
      if (!matches(bytes, request.integrity)) {
        onFailure(new SafeTypeError(`fetch: the body of ${slots.url} is not what the request's integrity says.`));
        return;
      }
      if (slots.body !== null) slots.body = new bodies.Body(bytes, undefined);
      onResponse(slots);
    };
    if (slots.body === null) check(new core.Bytes(0));
    else slots.body.consume(check, onFailure);
  }

  function schemeFetch(request) {
    const { url } = request;
    if (stringStartsWith(url, "data:")) return fromData(request, withoutFragment(url));
    if (stringStartsWith(url, "blob:")) return fromBlob(request, withoutFragment(url));
    throw new SafeTypeError(`fetch: the scheme of ${url} is not supported.`);
  }

  // What is at hand comes in a later microtask all the same: an abort before it ends the fetch, one after it the body.
  function atHand(request, signal) {
    const events = core.need("abort");
    return new SafePromise((resolve, reject) => {
      const deliver = (slots) => {
        if (slots.body !== null) slots.body.signal = signal;
        resolve(makeResponse(slots));
      };
      const run = async () => {
        await undefined; // by which nothing of the guest is reached
        try {
          if (events.isAborted(signal)) reject(events.signalReason(signal));
          else verify(request, schemeFetch(request), deliver, reject);
        } catch (error) {
          reject(error);
        }
      };
      run();
    });
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
      abort = open(request, (slots) => verify(request, slots, (whole) => resolve(makeResponse(whole)), reject), reject, onEnd);
      if (events.isAborted(signal)) onAbort(); // by the stream of the request's body
      else if (!ended) events.addAbortAlgorithm(signal, onAbort);
    });
  }

  // The fetch method (5.6): a promise.
  function start(input, init) {
    const request = requestOf(new Request(input, init));
    const signal = signalOf(request);
    const events = core.need("abort");
    if (events.isAborted(signal)) {
      const reason = events.signalReason(signal);
      if (request.body !== null) request.body.cancel(reason);
      return promiseReject(reason);
    }
    const { url } = request;
    if (stringStartsWith(url, "http:") || stringStartsWith(url, "https:")) return overNetwork(request, signal);
    return atHand(request, signal);
  }

  // ---- WebAssembly Web API (https://webassembly.github.io/spec/web-api/)

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

  return { __proto__: null, start, open, checkNetwork, bytesOfSource };
}

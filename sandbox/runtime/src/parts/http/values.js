// The Fetch Standard's objects from what the host sent of them (see ../values.js): data of the engine's own making, whose
// members have the right types already.

export function makeValues(core, { headers, bodies, requests, responses }) {
  const { SafeTypeError } = core;
  const bodyOf = (bytes) => (bytes === null ? null : new bodies.Body(bytes, undefined));

  function headersFrom(list) {
    const object = new headers.Headers();
    headers.fill(headers.slotsOf(object), list);
    return object;
  }

  const options = ["method", "mode", "credentials", "cache", "redirect", "referrerPolicy", "integrity", "keepalive"];

  function requestFrom(tag) {
    const { Request, requestOf } = requests();
    const { url, headers: list, body, referrer } = tag;
    const init = { __proto__: null };
    for (let i = 0; i < options.length; i++) init[options[i]] = tag[options[i]];
    const request = new Request(url, init);
    const slots = requestOf(request);
    if (body !== null && (slots.method === "GET" || slots.method === "HEAD")) {
      throw new SafeTypeError("A request with the method GET or HEAD cannot have a body.");
    }
    headers.fill(slots.headers, list);
    slots.body = bodyOf(body);
    if (referrer === "no-referrer") slots.referrer = "";
    return request;
  }

  function responseFrom({ status, statusText, url, headers: list, body, type = "default", redirected = false }) {
    if ((status < 200 || status > 599) && (status !== 0 || type !== "error")) {
      throw new SafeTypeError(`A response cannot have the status ${status}.`);
    }
    const { newSlots, makeResponse } = responses();
    const slots = newSlots(status, statusText, type, url);
    headers.fill(slots.headers, list);
    slots.redirected = redirected;
    slots.body = bodyOf(body);
    return makeResponse(slots);
  }

  return { __proto__: null, headersFrom, requestFrom, responseFrom };
}

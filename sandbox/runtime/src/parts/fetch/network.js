// Requests over the network (Fetch, 4.3 "scheme fetch" to 4.6 "HTTP-network fetch"), as far as there is no origin, no
// cache and no cookies. The host performs single exchanges; redirects are followed here, each as an exchange of its own.

const maxRedirects = 20;

export function makeNetwork(core, { headers, bodies, clients, newSlots }) {
  const { native, promiseThen, SafeTypeError, stringToLowerCase, toString } = core;
  const url = () => core.need("urls");
  const streams = () => core.need("streams");
  let exchanges = 0;

  const call = (operation, number, args) => native.call("", [operation, toString(number)], args);
  const giveUp = (number) => native.op("fetch.cancel", number);
  const isRedirect = (status) => status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
  const isNullBody = (status) => status === 204 || status === 205 || status === 304;

  /** The pinned error of a program that has no network. */
  function checkNetwork(address, what) {
    if (core.network !== undefined && core.network !== "none") return;
    throw new SafeTypeError(
      `${what}: there is no network here, so ${address} cannot be reached. `
      + "Call a tool of the host instead, or ask for network \"host\".",
    );
  }

  // What is under way for one fetch, from its first exchange to the end of the last one's body.
  class Fetching {
    method;
    record;
    pairs; // of the header list, copied
    body; // bytes, or null
    fromStream; // the body cannot be sent again
    redirect;
    client; // what is told of the program
    redirects = 0;
    number = 0; // of the exchange under way, 0 when there is none
    ended = false; // failed or given up
    reader = undefined; // of the request's body while it is read
    stream = undefined; // of the response's body
    onResponse;
    onFailure;
    onEnd;
    /** Nothing more happens: it failed, was given up, or the body has ended. */
    end() {
      this.number = 0;
      if (!this.ended) this.onEnd();
      this.ended = true;
    }
  }

  /**
   * Performs the request of slots: onResponse(slots of the response) or onFailure(error), and onEnd() when nothing more
   * will happen, the body of the response being at its end too. Returns abort(reason), which ends all of it.
   */
  function start(slots, onResponse, onFailure, onEnd = () => {}) {
    const f = new Fetching();
    f.method = slots.method;
    f.record = url().parse(slots.url, null);
    f.pairs = copyPairs(slots.headers.pairs, undefined);
    f.redirect = slots.redirect;
    f.client = clients.clientOf(slots);
    f.onResponse = onResponse;
    f.onFailure = (error) => {
      if (f.ended) return;
      f.end();
      onFailure(error);
    };
    f.onEnd = onEnd;
    readBody(f, slots.body);
    return (reason) => abort(f, reason);
  }

  const withoutFragment = (record) => url().serialize({ __proto__: null, ...record, fragment: null });

  function copyPairs(pairs, without) {
    const copy = [];
    for (let i = 0; i < pairs.length; i++) if (without === undefined || !without[pairs[i][0]]) core.define(copy, copy.length, pairs[i]);
    return copy;
  }

  // The body is sent whole: a stream is read to its end first.
  function readBody(f, body) {
    f.body = null;
    f.fromStream = false;
    if (body === null) return exchange(f);
    if (body.stream === undefined) {
      body.used = true;
      f.body = body.bytes;
      return exchange(f);
    }
    f.fromStream = true;
    f.reader = streams().acquireReader(body.stream);
    streams().readAllBytes(f.reader, (bytes) => {
      f.reader = undefined;
      f.body = bytes;
      if (!f.ended) exchange(f);
    }, f.onFailure);
  }

  function exchange(f) {
    const number = ++exchanges;
    let answer;
    try {
      answer = call("fetch", number, [{ __proto__: null, method: f.method, url: withoutFragment(f.record), headers: linesOf(clients.withClient(f.client, f.pairs, f.method, f.record)), body: f.body }]);
    } catch (error) { // the request is too large
      return f.onFailure(error);
    }
    f.number = number;
    promiseThen(answer, (head) => {
      if (!f.ended) receive(f, number, head);
    }, f.onFailure);
  }

  // Headers as they are sent: those of one name are one, written as the first.
  function linesOf(pairs) {
    const lines = [];
    const index = { __proto__: null };
    for (let i = 0; i < pairs.length; i++) {
      const line = index[pairs[i][0]];
      if (line !== undefined) line[1] += `, ${pairs[i][1]}`;
      else core.define(lines, lines.length, index[pairs[i][0]] = [pairs[i][2], pairs[i][1]]);
    }
    return lines;
  }

  function receive(f, number, head) {
    try {
      if (isRedirect(head.status) && f.redirect !== "manual") {
        const location = locationOf(f, head);
        if (location !== null) {
          checkRedirect(f, head.status, location);
          if (head.body) giveUp(number);
          return follow(f, head, location);
        }
      }
      f.onResponse(respond(f, number, head));
    } catch (error) {
      if (head.body) giveUp(number);
      f.onFailure(error);
    }
  }

  // Fetch, 2.2.6 "location URL": a record, null for a response without one.
  function locationOf(f, head) {
    let value = null;
    for (let i = 0; i < head.headers.length; i++) {
      if (stringToLowerCase(head.headers[i][0]) === "location" && value === null) value = head.headers[i][1];
    }
    if (value === null) return null;
    const record = url().parse(utf8(value), f.record);
    if (record === null) throw new SafeTypeError("fetch: the redirect's Location is not a URL.");
    if (record.fragment === null) record.fragment = f.record.fragment;
    return record;
  }

  // The characters of a header are bytes; an address in one is UTF-8.
  function utf8(value) {
    const bytes = new core.Bytes(value.length);
    for (let i = 0; i < value.length; i++) bytes[i] = core.stringCharCodeAt(value, i);
    return native.utf8Decode(bytes, false);
  }

  const bodyHeaders = { __proto__: null, "content-encoding": true, "content-language": true, "content-location": true, "content-type": true, "content-length": true };
  const credentials = { __proto__: null, authorization: true, cookie: true, "proxy-authorization": true };

  // Fetch, 4.4 "HTTP-redirect fetch".
  function checkRedirect(f, status, location) {
    if (f.redirect === "error") throw new SafeTypeError(`fetch: ${withoutFragment(f.record)} redirects, which the request does not allow.`);
    if (location.scheme !== "http" && location.scheme !== "https") throw new SafeTypeError(`fetch: the redirect leads to the scheme ${location.scheme}.`);
    if (f.redirects === maxRedirects) throw new SafeTypeError(`fetch: there were more than ${maxRedirects} redirects.`);
    if (location.username || location.password) throw new SafeTypeError("fetch: the redirect leads to a URL with a user name or a password.");
    if (status !== 303 && f.fromStream) throw new SafeTypeError("fetch: a request whose body is a stream cannot be redirected.");
  }

  function follow(f, { status, headers: lines }, location) {
    f.redirects++;
    clients.redirected(f.client, lines, f.record, location);
    if (((status === 301 || status === 302) && f.method === "POST") || (status === 303 && f.method !== "GET" && f.method !== "HEAD")) {
      f.method = "GET";
      f.body = null;
      f.fromStream = false;
      f.pairs = copyPairs(f.pairs, bodyHeaders);
    }
    if (url().originOf(location) !== url().originOf(f.record)) f.pairs = copyPairs(f.pairs, credentials);
    f.record = location;
    exchange(f);
  }

  function respond(f, number, head) {
    // A host that follows redirects says where the response came from.
    const final = head.url === "" ? withoutFragment(f.record) : withoutFragment(url().parse(head.url, null) ?? f.record);
    const slots = newSlots(head.status, head.statusText, "basic", final);
    slots.redirected = f.redirects > 0 || final !== withoutFragment(f.record);
    for (let i = 0; i < head.headers.length; i++) headers.add(slots.headers, head.headers[i][0], head.headers[i][1]);
    slots.headers.guard = "immutable";
    if (f.method === "HEAD" || isNullBody(head.status)) {
      if (head.body) giveUp(number);
      f.end();
    } else if (head.body) {
      slots.body = new bodies.Body(undefined, bodyOf(f, number));
    } else {
      slots.body = new bodies.Body(new core.Bytes(0), undefined);
      f.end();
    }
    return slots;
  }

  // The body as a stream: each pull asks for one piece. One is asked for ahead, so that the end is found, and a failure.
  function bodyOf(f, number) {
    f.stream = streams().setUpReadableBytes({
      __proto__: null,
      highWaterMark: 1,
      pull: () => f.ended ? undefined : promiseThen(call("read", number, []), (piece) => {
        if (f.ended) return;
        if (piece !== null) return f.stream.enqueue(piece);
        f.end();
        f.stream.close();
      }, (error) => {
        if (f.ended) return;
        f.end();
        f.stream.error(error);
      }),
      cancel: () => abort(f, undefined),
    });
    return f.stream.stream;
  }

  function abort(f, reason) {
    if (f.ended) return;
    const { number, reader, stream } = f;
    f.end();
    if (number !== 0) giveUp(number);
    if (stream !== undefined && reason !== undefined) stream.error(reason);
    if (reader !== undefined) promiseThen(reader.cancel(reason), undefined, () => {});
  }

  return { __proto__: null, start, checkNetwork };
}

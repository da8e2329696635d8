// What a program with an address tells of itself: the headers Referer and Origin (Fetch, 3.2 "Origin header" and 4.1 "main
// fetch"; Referrer Policy, https://w3c.github.io/webappsec-referrer-policy/). A program without an address, as all are
// but for tests, tells nothing.

const maxReferrer = 4096; // characters; a longer one is cut to its origin

export function makeClients(core, headers, baseURL) {
  const { define, list, push, SafeTypeError, stringToLowerCase } = core;
  const url = () => core.need("urls");
  const originOf = (record) => url().originOf(record);
  const policies = {
    __proto__: null, "no-referrer": true, "no-referrer-when-downgrade": true, "same-origin": true, origin: true, "strict-origin": true,
    "origin-when-cross-origin": true, "strict-origin-when-cross-origin": true, "unsafe-url": true,
  };

  // What one fetch tells, from hop to hop.
  class Client {
    origin;
    referrer; // record, or null for none
    policy;
    mode;
    crossed = false; // some hop was of another origin
    tainted = false; // a hop led from one other origin to another
  }

  /** The client of a request, undefined for a program without an address. */
  function clientOf(slots) {
    const base = baseURL();
    if (base === null) return undefined;
    const client = new Client();
    client.origin = originOf(base);
    client.referrer = slots.referrer === "" ? null : slots.referrer === "about:client" ? base : url().parse(slots.referrer, null);
    client.policy = slots.referrerPolicy || "strict-origin-when-cross-origin";
    client.mode = slots.mode;
    return client;
  }

  // Referrer Policy, 8.4 "strip URL for use as a referrer".
  function strip(record, originOnly) {
    if (originOnly) return url().parse(`${originOf(record)}/`, null);
    return { __proto__: null, ...record, username: "", password: "", fragment: null };
  }

  // 8.3 "determine request's referrer": a record, or null.
  function determine(client, to) {
    if (client.referrer === null) return null;
    const { policy } = client;
    const full = strip(client.referrer, url().serialize(client.referrer).length > maxReferrer);
    const origin = strip(client.referrer, true);
    const same = originOf(full) === originOf(to);
    const downgrade = full.scheme === "https" && to.scheme !== "https";
    if (policy === "no-referrer") return null;
    if (policy === "origin") return origin;
    if (policy === "unsafe-url") return full;
    if (policy === "strict-origin") return downgrade ? null : origin;
    if (policy === "same-origin") return same ? full : null;
    if (policy === "origin-when-cross-origin") return same ? full : origin;
    if (policy === "no-referrer-when-downgrade") return downgrade ? null : full;
    return same ? full : downgrade ? null : origin;
  }

  // Fetch, 3.2 "append a request `Origin` header": undefined for none.
  function originFor(client, method, to) {
    const shown = client.tainted ? "null" : client.origin;
    if (client.mode === "cors" && client.crossed) return shown;
    if (method === "GET" || method === "HEAD") return undefined;
    if (client.mode === "cors") return shown;
    const { policy } = client;
    const same = originOf(to) === client.origin;
    const hidden = policy === "no-referrer" || (policy === "same-origin" && !same)
      || ((policy === "strict-origin" || policy === "strict-origin-when-cross-origin" || policy === "no-referrer-when-downgrade")
        && core.stringStartsWith(client.origin, "https:") && to.scheme !== "https");
    return hidden ? "null" : shown;
  }

  /** The header list of a hop: pairs and what the client tells, where the program has not said it. */
  function withClient(client, pairs, method, to) {
    if (client === undefined) return pairs;
    if (client.mode === "same-origin" && originOf(to) !== client.origin) throw new SafeTypeError("fetch: the mode 'same-origin' does not allow another origin.");
    const all = [];
    const told = { __proto__: null };
    for (let i = 0; i < pairs.length; i++) {
      define(all, i, pairs[i]);
      told[pairs[i][0]] = true;
    }
    if (originOf(to) !== client.origin) client.crossed = true;
    client.referrer = determine(client, to);
    if (client.referrer !== null && !told.referer) define(all, all.length, ["referer", url().serialize(client.referrer), "Referer"]);
    const origin = originFor(client, method, to);
    if (origin !== undefined && !told.origin) define(all, all.length, ["origin", origin, "Origin"]);
    return all;
  }

  /** Takes note of a redirect; lines are the headers of its response. */
  function redirected(client, lines, from, to) {
    if (client === undefined) return;
    if (originOf(to) !== originOf(from) && originOf(from) !== client.origin) client.tainted = true;
    for (let i = 0; i < lines.length; i++) {
      if (stringToLowerCase(lines[i][0]) !== "referrer-policy") continue;
      const tokens = split(lines[i][1]);
      for (let k = 0; k < tokens.length; k++) if (policies[tokens[k]]) client.policy = tokens[k];
    }
  }

  function split(value) {
    const tokens = list();
    let token = "";
    for (let i = 0; i <= value.length; i++) {
      if (i < value.length && value[i] !== ",") {
        token += value[i];
        continue;
      }
      push(tokens, stringToLowerCase(headers.normalize(token)));
      token = "";
    }
    return tokens;
  }

  return { __proto__: null, clientOf, withClient, redirected };
}

// The basic URL parser (URL Standard, https://url.spec.whatwg.org/#url-parsing, 4.4). The standard writes it as a state
// machine over code points; here each state, or run of states, is a function over the piece of text that it reads.
//
// A record has scheme, username, password, host (serialized, or null), port (or null), path, query, fragment (or null)
// and opaque. A path that is not opaque is kept as a text too: each segment with a "/" before it, and "" for none.

import { C0, FRAGMENT, PATH, QUERY, SPECIAL_QUERY, USERINFO } from "./encode.js";

const isAlpha = (code) => (code | 32) >= 97 && (code | 32) <= 122;
const isDigit = (code) => code >= 48 && code <= 57;

export function makeParser(core, { percentEncode }, { parseHost }) {
  const { stringCharAt: charAt, stringCharCodeAt: at, stringIndexOf: indexOf, stringLastIndexOf: lastIndexOf, stringSlice: slice, stringToLowerCase: lower } = core;

  const defaultPorts = { __proto__: null, "http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": null };
  const isSpecial = (url) => url.scheme in defaultPorts;

  function removeTabs(text) {
    let result = "";
    let done = 0;
    for (let i = 0; i < text.length; i++) {
      const code = at(text, i);
      if (code !== 9 && code !== 10 && code !== 13) continue;
      result += slice(text, done, i);
      done = i + 1;
    }
    return done === 0 ? text : result + slice(text, done);
  }

  function trim(text) {
    let start = 0;
    let end = text.length;
    while (start < end && at(text, start) <= 32) start++;
    while (end > start && at(text, end - 1) <= 32) end--;
    return start === 0 && end === text.length ? text : slice(text, start, end);
  }

  // Where the scheme of a text ends: the index of its ":", -1 if it has none.
  function schemeEnd(text) {
    if (text === "" || !isAlpha(at(text, 0))) return -1;
    for (let i = 1; i < text.length; i++) {
      const code = at(text, i);
      if (code === 58) return i;
      if (!isAlpha(code) && !isDigit(code) && code !== 43 && code !== 45 && code !== 46) return -1;
    }
    return -1;
  }

  const isSlash = (url, unit) => unit === "/" || (unit === "\\" && isSpecial(url));

  // The index of the first "?" or "#" of text, and of the first slash or backslash if slashes is true.
  function endOf(url, text, from, slashes) {
    for (let i = from; i < text.length; i++) {
      const unit = charAt(text, i);
      if (unit === "?" || unit === "#" || (slashes && isSlash(url, unit))) return i;
    }
    return text.length;
  }

  // Windows drive letters (4.2).
  const isDriveLetter = (text) => text.length === 2 && isAlpha(at(text, 0)) && (charAt(text, 1) === ":" || charAt(text, 1) === "|");
  const startsWithDriveLetter = (text, i) =>
    isDriveLetter(slice(text, i, i + 2)) && (text.length === i + 2 || indexOf("/\\?#", charAt(text, i + 2)) >= 0);
  // The normalized drive letter with which a path begins, with its slash; else "".
  const driveOf = (path) =>
    (charAt(path, 2) === ":" && isDriveLetter(slice(path, 1, 3)) && (path.length === 3 || charAt(path, 3) === "/") ? slice(path, 0, 3) : "");

  function shorten(url) {
    const { path } = url;
    if (path === "" || (url.scheme === "file" && path.length === 3 && driveOf(path) !== "")) return;
    url.path = slice(path, 0, lastIndexOf(path, "/"));
  }

  // How many dots a segment stands for: 1, 2, or 0 if it is another segment.
  function dots(segment) {
    if (segment.length > 6) return 0;
    let count = 0;
    for (let i = 0; i < segment.length; i++) {
      if (charAt(segment, i) === "%" && charAt(segment, i + 1) === "2" && (charAt(segment, i + 2) === "e" || charAt(segment, i + 2) === "E")) i += 2;
      else if (charAt(segment, i) !== ".") return 0;
      count++;
    }
    return count > 2 ? 0 : count;
  }

  function newRecord(scheme) {
    return { scheme, username: "", password: "", host: null, port: null, path: "", opaque: false, query: null, fragment: null };
  }

  // Parses text, which is a USVString; base is a record or null. Returns a record, or null for failure.
  function parse(input, base = null) {
    const text = removeTabs(trim(input));
    const colon = schemeEnd(text);
    if (colon < 0) return base === null ? null : parseRelative(text, base);
    const url = newRecord(lower(slice(text, 0, colon)));
    const start = colon + 1;
    if (url.scheme === "file") return parseFile(url, text, start, base);
    if (isSpecial(url)) {
      const same = base !== null && base.scheme === url.scheme;
      if (same && !(charAt(text, start) === "/" && charAt(text, start + 1) === "/")) return parseReference(url, text, start, base);
      return parseAuthority(url, text, skipSlashes(text, start));
    }
    if (charAt(text, start) !== "/") return parseOpaque(url, text, start);
    return charAt(text, start + 1) === "/" ? parseAuthority(url, text, start + 2) : parsePath(url, text, start + 1);
  }

  function skipSlashes(text, i) {
    while (charAt(text, i) === "/" || charAt(text, i) === "\\") i++;
    return i;
  }

  // No scheme state.
  function parseRelative(text, base) {
    const url = newRecord(base.scheme);
    if (base.opaque) {
      if (charAt(text, 0) !== "#") return null;
      url.opaque = true;
      url.path = base.path;
      url.query = base.query;
      return parseTail(url, text, 0);
    }
    return url.scheme === "file" ? parseFile(url, text, 0, base) : parseReference(url, text, 0, base);
  }

  // Relative state and relative slash state.
  function parseReference(url, text, i, base) {
    if (isSlash(url, charAt(text, i))) {
      if (isSlash(url, charAt(text, i + 1))) return parseAuthority(url, text, isSpecial(url) ? skipSlashes(text, i) : i + 2);
      copyAuthority(url, base);
      return parsePath(url, text, i + 1);
    }
    copyAuthority(url, base);
    return parseRelativePath(url, text, i, base);
  }

  function copyAuthority(url, base) {
    url.username = base.username;
    url.password = base.password;
    url.host = base.host;
    url.port = base.port;
  }

  function parseRelativePath(url, text, i, base) {
    url.path = base.path;
    if (charAt(text, i) !== "?") url.query = base.query;
    if (i === text.length || charAt(text, i) === "?" || charAt(text, i) === "#") return parseTail(url, text, i);
    url.query = null;
    if (url.scheme === "file" && startsWithDriveLetter(text, i)) url.path = "";
    else shorten(url);
    return parsePath(url, text, i);
  }

  // Authority, host and port state.
  function parseAuthority(url, text, start) {
    const end = endOf(url, text, start, true);
    const authority = slice(text, start, end);
    const sign = lastIndexOf(authority, "@");
    if (sign >= 0) {
      if (sign + 1 === authority.length) return null;
      const info = slice(authority, 0, sign);
      const colon = indexOf(info, ":");
      url.username = percentEncode(colon < 0 ? info : slice(info, 0, colon), USERINFO);
      if (colon >= 0) url.password = percentEncode(slice(info, colon + 1), USERINFO);
    }
    const place = slice(authority, sign + 1);
    const colon = portColon(place);
    const name = slice(place, 0, colon);
    if (name === "" && (colon < place.length || isSpecial(url))) return null;
    url.host = name === "" ? "" : parseHost(name, !isSpecial(url));
    if (url.host === null) return null;
    const port = slice(place, colon + 1);
    const digits = digitsEnd(port);
    if (digits < port.length || !setPort(url, port)) return null;
    return parsePathStart(url, text, end);
  }

  // The index of the ":" before the port, or the length of the text.
  function portColon(text) {
    let inside = false;
    for (let i = 0; i < text.length; i++) {
      if (charAt(text, i) === "[") inside = true;
      else if (charAt(text, i) === "]") inside = false;
      else if (charAt(text, i) === ":" && !inside) return i;
    }
    return text.length;
  }

  function digitsEnd(text) {
    let i = 0;
    while (i < text.length && isDigit(at(text, i))) i++;
    return i;
  }

  // digits may be empty: then the port stays.
  function setPort(url, digits) {
    if (digits === "") return true;
    const port = +digits;
    if (port > 65535) return false;
    url.port = port === defaultPorts[url.scheme] ? null : port;
    return true;
  }

  // File state, file slash state and file host state.
  function parseFile(url, text, i, base) {
    url.host = "";
    const from = base !== null && base.scheme === "file" ? base : null;
    if (!isSlash(url, charAt(text, i))) {
      if (from === null) return parsePath(url, text, i);
      url.host = from.host;
      return parseRelativePath(url, text, i, from);
    }
    i++;
    if (!isSlash(url, charAt(text, i))) {
      if (from !== null) {
        url.host = from.host;
        if (!startsWithDriveLetter(text, i)) url.path = driveOf(from.path);
      }
      return parsePath(url, text, i);
    }
    i++;
    const end = endOf(url, text, i, true);
    const name = slice(text, i, end);
    if (isDriveLetter(name)) return parsePath(url, text, i);
    if (!setFileHost(url, name)) return null;
    return parsePathStart(url, text, end);
  }

  function setFileHost(url, name) {
    const host = name === "" ? "" : parseHost(name, false);
    if (host === null) return false;
    url.host = host === "localhost" ? "" : host;
    return true;
  }

  function parsePathStart(url, text, i) {
    if (!isSpecial(url)) {
      if (charAt(text, i) !== "/") return parseTail(url, text, i);
      i++;
    } else if (isSlash(url, charAt(text, i))) {
      i++;
    }
    return parsePath(url, text, i);
  }

  // Path state, from behind the slash that begins the path, if there is one.
  function parsePath(url, text, i) {
    const end = endOf(url, text, i, false);
    appendPath(url, slice(text, i, end));
    return parseTail(url, text, end);
  }

  function appendPath(url, text) {
    const special = isSpecial(url);
    const encoded = percentEncode(text, PATH);
    for (let start = 0; start <= encoded.length;) {
      let end = start;
      while (end < encoded.length && encoded[end] !== "/" && !(special && encoded[end] === "\\")) end++;
      const segment = slice(encoded, start, end);
      const last = end === encoded.length;
      const up = dots(segment);
      if (up === 2) shorten(url);
      if (up > 0) {
        if (last) url.path += "/";
      } else if (url.scheme === "file" && url.path === "" && isDriveLetter(segment)) {
        url.path = `/${charAt(segment, 0)}:`;
      } else {
        url.path += `/${segment}`;
      }
      start = end + 1;
    }
  }

  // Opaque path state. A space right before the query or the fragment is encoded, since it would be lost at the end.
  function parseOpaque(url, text, i) {
    const end = endOf(url, text, i, false);
    const path = percentEncode(slice(text, i, end), C0);
    url.opaque = true;
    url.path = end < text.length && charAt(text, end - 1) === " " && end > i ? `${slice(path, 0, -1)}%20` : path;
    return parseTail(url, text, end);
  }

  // Query state and fragment state; text[i] is "?", "#" or the end.
  function parseTail(url, text, i) {
    const hash = indexOf(text, "#", i);
    if (charAt(text, i) === "?") setQuery(url, slice(text, i + 1, hash < 0 ? text.length : hash));
    if (hash >= 0) setFragment(url, slice(text, hash + 1));
    return url;
  }

  function setQuery(url, text) {
    url.query = percentEncode(text, isSpecial(url) ? SPECIAL_QUERY : QUERY);
  }

  function setFragment(url, text) {
    url.fragment = percentEncode(text, FRAGMENT);
  }

  // The URL serializer (4.5).
  function serialize(url, withoutFragment = false) {
    let text = `${url.scheme}:`;
    if (url.host !== null) {
      text += "//";
      if (url.username !== "" || url.password !== "") text += `${url.username}${url.password !== "" ? `:${url.password}` : ""}@`;
      text += serializeHost(url);
    } else if (!url.opaque && charAt(url.path, 0) === "/" && charAt(url.path, 1) === "/") {
      text += "/."; // else the path would be read as a host
    }
    text += url.path;
    if (url.query !== null) text += `?${url.query}`;
    if (url.fragment !== null && !withoutFragment) text += `#${url.fragment}`;
    return text;
  }

  const serializeHost = (url) => (url.port === null ? url.host : `${url.host}:${url.port}`);

  // The origin of a URL (4.7), serialized.
  function originOf(url) {
    if (url.scheme === "blob") {
      const inner = parse(url.path);
      return inner !== null && (inner.scheme === "http" || inner.scheme === "https") ? originOf(inner) : "null";
    }
    return isSpecial(url) && url.scheme !== "file" ? `${url.scheme}://${serializeHost(url)}` : "null";
  }

  // ---- the setters of the API (6.1), where the standard runs the parser with a state override.

  const setters = {
    __proto__: null,
    protocol(url, value) {
      const text = removeTabs(`${value}:`);
      const end = schemeEnd(text);
      if (end < 0) return;
      const scheme = lower(slice(text, 0, end));
      if (isSpecial(url) !== scheme in defaultPorts) return;
      if (scheme === "file" && (url.username !== "" || url.password !== "" || url.port !== null)) return;
      if (url.scheme === "file" && url.host === "") return;
      url.scheme = scheme;
      if (url.port === defaultPorts[scheme]) url.port = null;
    },
    username(url, value) {
      if (!lacksAuthority(url)) url.username = percentEncode(value, USERINFO);
    },
    password(url, value) {
      if (!lacksAuthority(url)) url.password = percentEncode(value, USERINFO);
    },
    host: (url, value) => setHost(url, value, true),
    hostname: (url, value) => setHost(url, value, false),
    port(url, value) {
      if (lacksAuthority(url)) return;
      if (value === "") url.port = null;
      const text = removeTabs(value);
      setPort(url, slice(text, 0, digitsEnd(text)));
    },
    pathname(url, value) {
      if (url.opaque) return;
      const text = removeTabs(value);
      url.path = "";
      if (text === "" && !isSpecial(url)) {
        if (url.host === null) url.path = "/";
      } else {
        appendPath(url, isSlash(url, charAt(text, 0)) ? slice(text, 1) : text);
      }
    },
    search(url, value) {
      if (value === "") url.query = null;
      else setQuery(url, removeTabs(charAt(value, 0) === "?" ? slice(value, 1) : value));
    },
    hash(url, value) {
      if (value === "") url.fragment = null;
      else setFragment(url, removeTabs(charAt(value, 0) === "#" ? slice(value, 1) : value));
    },
  };

  // Such a URL cannot have a username, password or port (4.2).
  const lacksAuthority = (url) => url.host === null || url.host === "" || url.scheme === "file";

  // Returns whether the host was taken.
  function setHost(url, value, withPort) {
    if (url.opaque) return false;
    const text = removeTabs(value);
    const place = slice(text, 0, endOf(url, text, 0, true));
    if (url.scheme === "file") return setFileHost(url, place);
    const colon = portColon(place);
    const name = slice(place, 0, colon);
    if (colon < place.length && (name === "" || !withPort)) return false;
    if (name === "" && (isSpecial(url) || url.username !== "" || url.password !== "" || url.port !== null)) return false;
    const host = name === "" ? "" : parseHost(name, !isSpecial(url));
    if (host === null) return false;
    url.host = host;
    const port = slice(place, colon + 1);
    setPort(url, slice(port, 0, digitsEnd(port)));
    return true;
  }

  // What a text becomes as a component of a URL, null for failure: for the URL Pattern Standard (3.1), which parses it
  // with a state override into a URL that is special where not said otherwise.
  const dummy = () => parse("https://dummy.invalid/");
  const after = (name, value) => {
    const url = dummy();
    setters[name](url, value);
    return url;
  };
  const canonical = {
    __proto__: null,
    username: (value) => percentEncode(value, USERINFO),
    password: (value) => percentEncode(value, USERINFO),
    hostname(value, opaque) {
      const url = opaque ? newRecord("dummy") : dummy();
      return setHost(url, value, false) ? url.host : null;
    },
    port(value, protocol) {
      const text = removeTabs(value);
      const digits = slice(text, 0, digitsEnd(text));
      if (digits === "" || +digits > 65535) return null;
      return +digits === defaultPorts[protocol] ? "" : `${+digits}`;
    },
    pathname: (value) => (charAt(value, 0) === "/" ? after("pathname", value).path : slice(after("pathname", `/-${value}`).path, 2)),
    opaquePathname: (value) => percentEncode(removeTabs(value), C0),
    search: (value) => percentEncode(removeTabs(value), SPECIAL_QUERY),
    hash: (value) => percentEncode(removeTabs(value), FRAGMENT),
  };

  return { __proto__: null, canonical, parse, serialize, serializeHost, originOf, setters, defaultPorts, isSpecial };
}

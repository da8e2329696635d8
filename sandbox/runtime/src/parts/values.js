// Platform objects as values that cross to the host (ipc/protocol, the value codec): what the tag of one has in it, and
// the object for a tag. The engine asks only when such an object, or such a tag, is there.

export default function values(core) {
  const { floor, getPrototypeOf, hasOwn, isObject, list, loaded, native, need, parts, push, SafeTypeError, stringCharCodeAt, stringIncludes, toUSVString, typedArrayTag } = core;

  // ---- from objects

  const headersOf = (slots) => need("http").sortedPairs(slots);

  // The bytes of a body that nobody has read from, null for none, or why it has none.
  function bytesOfBody({ body }, name) {
    if (body === null) return null;
    if (body.isUnusable()) return `a ${name} whose body was used, or is locked, cannot leave the sandbox: return what was read of it`;
    if (body.bytes === undefined) return `a ${name} whose body is a stream cannot leave the sandbox: read it first, as by await it.text()`;
    return body.bytes;
  }

  function writeRequest(slots) {
    const bytes = bytesOfBody(slots, "Request");
    if (typeof bytes === "string") return bytes;
    const body = { __proto__: null, method: slots.method, url: slots.url, headers: headersOf(slots.headers), body: bytes };
    for (let i = 0; i < requestOptions.length; i++) {
      const name = requestOptions[i][0];
      if (slots[name] !== requestOptions[i][1]) body[name] = name === "referrer" ? "no-referrer" : slots[name];
    }
    return ["@request", body];
  }

  function writeResponse(slots) {
    const bytes = bytesOfBody(slots, "Response");
    if (typeof bytes === "string") return bytes;
    const { status, statusText, url, type, redirected } = slots;
    const body = { __proto__: null, status, statusText, url, headers: headersOf(slots.headers), body: bytes };
    if (type !== "default") body.type = type;
    if (redirected) body.redirected = true;
    return ["@response", body];
  }

  function writeBlob(object, { isFile, bytesOfBlob, typeOfBlob, nameOfFile, lastModifiedOf }) {
    const type = typeOfBlob(object);
    const data = bytesOfBlob(object);
    if (!isFile(object)) return ["@blob", { __proto__: null, type, data }];
    return ["@file", { __proto__: null, name: nameOfFile(object), type, lastModified: lastModifiedOf(object), data }];
  }

  // By part: gives a tag and what is in it, a reason why the object cannot be written, or undefined for another class.
  const writers = {
    __proto__: null,
    url(object, { hrefOf }) {
      const href = hrefOf(object);
      return href === undefined ? undefined : ["@url", href];
    },
    blob: (object, blobs) => (blobs.isBlob(object) ? writeBlob(object, blobs) : undefined),
    formdata: (object, { entriesOf, isFormData }) => (isFormData(object) ? ["@formdata", entriesOf(object)] : undefined),
    http(object, { isHeaders, headerSlots, isRequest, requestOf, isResponse, responseOf }) {
      if (isHeaders(object)) return ["@headers", headersOf(headerSlots(object))];
      if (isRequest(object)) return writeRequest(requestOf(object));
      return isResponse(object) ? writeResponse(responseOf(object)) : undefined;
    },
  };

  // What to send in place of an object that has no tag.
  const advice = {
    __proto__: null,
    URLSearchParams: "send its text, or Object.fromEntries(it)",
    ReadableStream: "read it first, as by await new Response(it).text()",
    CryptoKey: "export it first",
    AbortSignal: "send its aborted and reason",
  };

  /** Returns [tag, what is in it], or a text that says why the object cannot leave. */
  function describe(object) {
    for (const part in writers) {
      const exports = loaded(part);
      const found = exports === undefined ? undefined : writers[part](object, exports);
      if (found !== undefined) return found;
    }
    const name = nameOf(object);
    const hint = advice[name] === undefined ? "" : `: ${advice[name]}`;
    return `${stringIncludes("AEIOo", name[0]) ? "an" : "a"} ${name} cannot leave the sandbox${hint}`;
  }

  // The interface of a platform object, whatever the program made of its names.
  function nameOf(object) {
    for (let p = object; p !== null; p = getPrototypeOf(p)) {
      if (p === core.EventTarget.prototype) return "EventTarget";
      for (const part in parts) {
        const exports = loaded(part);
        const names = exports === undefined ? undefined : parts[part].interfaces;
        for (let i = 0; names !== undefined && i < names.length; i++) if (exports[names[i]].prototype === p) return names[i];
      }
    }
    return "object of the library";
  }

  // ---- to objects. What is in a tag is data of the engine's own making: arrays, bytes, and objects without prototype.

  const malformed = (tag) => new SafeTypeError(`a malformed ${tag}`);

  const isArray = (value) => native.classOf(value) === "Array";
  const isInteger = (value) => typeof value === "number" && floor(value) === value;
  const isText = (value) => typeof value === "string";
  const areBytes = (text) => {
    for (let i = 0; i < text.length; i++) if (stringCharCodeAt(text, i) > 255) return false;
    return true;
  };
  const isFlag = (value) => typeof value === "boolean";
  const isBytes = (value) => isObject(value) && typedArrayTag(value) === "Uint8Array";
  const isBody = (value) => value === null || isBytes(value);
  const isHeaderList = (value) => {
    if (!isArray(value)) return false;
    for (let i = 0; i < value.length; i++) {
      const pair = value[i];
      if (!isArray(pair) || pair.length !== 2 || !isText(pair[0]) || !isText(pair[1]) || !areBytes(pair[1])) return false;
    }
    return true;
  };

  const requestOptions = [
    ["mode", "cors", isText], ["credentials", "same-origin", isText], ["cache", "default", isText], ["redirect", "follow", isText],
    ["referrer", "about:client", isText], ["referrerPolicy", "", isText], ["integrity", "", isText], ["keepalive", false, isFlag],
  ];

  // Whether an object has all members of needed, each of its kind, and beside them only ones of optional.
  function fits(object, needed, optional) {
    if (!isObject(object) || isArray(object)) return false;
    const kinds = { __proto__: null };
    for (let i = 0; i < optional.length; i++) kinds[optional[i][0]] = optional[i][optional[i].length - 1];
    for (let i = 0; i < needed.length; i++) {
      if (!hasOwn(object, needed[i][0])) return false;
      kinds[needed[i][0]] = needed[i][1];
    }
    for (const key in object) if (kinds[key] === undefined || !kinds[key](object[key])) return false;
    return true;
  }

  const blobMembers = [["type", isText], ["data", isBytes]];
  const fileMembers = [["name", isText], ["type", isText], ["lastModified", isInteger], ["data", isBytes]];
  const requestMembers = [["method", isText], ["url", isText], ["headers", isHeaderList], ["body", isBody]];
  const responseMembers = [["status", isInteger], ["statusText", isText], ["url", isText], ["headers", isHeaderList], ["body", isBody]];
  const responseOptions = [["type", isText], ["redirected", isFlag]];

  function readForm(entries) {
    if (!isArray(entries)) throw malformed("@formdata");
    const { isFile } = need("blob");
    const pairs = list();
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i];
      if (!isArray(entry) || entry.length !== 2 || !isText(entry[0]) || !(isText(entry[1]) || isFile(entry[1]))) throw malformed("@formdata");
      push(pairs, [toUSVString(entry[0]), isText(entry[1]) ? toUSVString(entry[1]) : entry[1]]);
    }
    return need("formdata").makeForm(pairs);
  }

  function readRequest(body) {
    if (!fits(body, requestMembers, requestOptions)) throw malformed("@request");
    return need("http").requestFrom(body);
  }

  const readers = {
    __proto__: null,
    "@url"(href) {
      const { URL } = need("url");
      if (!isText(href)) throw malformed("@url");
      return new URL(href);
    },
    "@blob"(body) {
      const { makeBlob, normalType } = need("blob");
      if (!fits(body, blobMembers, [])) throw malformed("@blob");
      return makeBlob(body.data, normalType(body.type));
    },
    "@file"(body) {
      const { makeFile, normalType } = need("blob");
      if (!fits(body, fileMembers, [])) throw malformed("@file");
      return makeFile(body.data, toUSVString(body.name), normalType(body.type), body.lastModified);
    },
    "@headers"(list) {
      if (!isHeaderList(list)) throw malformed("@headers");
      return need("http").headersFrom(list);
    },
    "@formdata": readForm,
    "@request": readRequest,
    "@response"(body) {
      if (!fits(body, responseMembers, responseOptions)) throw malformed("@response");
      return need("http").responseFrom(body);
    },
  };

  /** Returns the object for a tag and what is in it; throws a TypeError where that is wrong, undefined for another tag. */
  const revive = (tag, body) => readers[tag]?.(body);

  return { __proto__: null, describe, revive };
}

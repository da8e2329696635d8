// FormData (XMLHttpRequest, https://xhr.spec.whatwg.org/#interface-formdata) and multipart/form-data both ways
// (https://html.spec.whatwg.org/#multipart-form-data, https://andreubotella.github.io/multipart-form-data/).

export default function formdata(core) {
  const {
    Bytes, finish, iterable, list, native, push, requireArguments, SafeTypeError, stringIndexOf, stringSlice, toUSVString, typedArrayBuffer,
    typedArrayByteLength, typedArrayByteOffset,
  } = core;
  const blobs = core.need("blob");
  let entriesOf, isForm;

  // "create an entry"
  function toEntry(operation, given, name, value, filename) {
    requireArguments(`${operation}' on 'FormData`, given, 2);
    const key = toUSVString(name);
    if (!blobs.isBlob(value)) {
      if (given > 2) throw new SafeTypeError(`FormData.${operation}: a file name can go only with a Blob.`);
      return [key, toUSVString(value)];
    }
    if (given > 2) {
      const lastModified = blobs.isFile(value) ? value.lastModified : undefined;
      return [key, blobs.makeFile(blobs.bytesOfBlob(value), toUSVString(filename), blobs.typeOfBlob(value), lastModified)];
    }
    if (blobs.isFile(value)) return [key, value];
    return [key, blobs.makeFile(blobs.bytesOfBlob(value), "blob", blobs.typeOfBlob(value))];
  }

  class FormData {
    #entries = list();
    static {
      entriesOf = (value) => value.#entries;
      isForm = (value) => core.isObject(value) && #entries in value;
    }
    constructor(form = undefined, submitter = null) {
      if (form !== undefined) throw new SafeTypeError("FormData: there are no form elements here; call it without arguments.");
      if (submitter !== null && submitter !== undefined) throw new SafeTypeError("FormData: there are no elements here.");
    }
    append(name, value, filename = undefined) {
      const entries = this.#entries;
      push(entries, toEntry("append", arguments.length, name, value, filename));
    }
    delete(name) {
      this.#entries;
      requireArguments("delete' on 'FormData", arguments.length, 1);
      this.#remove(toUSVString(name));
    }
    get(name) {
      const entries = this.#entries;
      requireArguments("get' on 'FormData", arguments.length, 1);
      const key = toUSVString(name);
      for (let i = 0; i < entries.length; i++) if (entries[i][0] === key) return entries[i][1];
      return null;
    }
    getAll(name) {
      const entries = this.#entries;
      requireArguments("getAll' on 'FormData", arguments.length, 1);
      const key = toUSVString(name);
      const found = [];
      for (let i = 0; i < entries.length; i++) if (entries[i][0] === key) core.define(found, found.length, entries[i][1]);
      return found;
    }
    has(name) {
      const entries = this.#entries;
      requireArguments("has' on 'FormData", arguments.length, 1);
      const key = toUSVString(name);
      for (let i = 0; i < entries.length; i++) if (entries[i][0] === key) return true;
      return false;
    }
    set(name, value, filename = undefined) {
      const entries = this.#entries;
      const entry = toEntry("set", arguments.length, name, value, filename);
      for (let i = 0; i < entries.length; i++) {
        if (entries[i][0] !== entry[0]) continue;
        entries[i] = entry;
        this.#remove(entry[0], i + 1);
        return;
      }
      push(entries, entry);
    }
    // In place: iterators look at the list as it is.
    #remove(key, from = 0) {
      const entries = this.#entries;
      let kept = from;
      for (let i = from; i < entries.length; i++) if (entries[i][0] !== key) entries[kept++] = entries[i];
      entries.length = kept;
    }
  }
  iterable(FormData, "FormData", (value) => entriesOf(value));
  finish(FormData, { __proto__: null, name: "FormData" });
  core.defineProperty(FormData, "length", { __proto__: null, value: 0, configurable: true });

  function makeForm(entries) {
    const form = new FormData();
    const own = entriesOf(form);
    for (let i = 0; i < entries.length; i++) push(own, entries[i]);
    return form;
  }

  // ---- writing (HTML, 4.10.22.8)

  const replaceAll = (text, from, to) => {
    let result = "";
    let at = 0;
    for (let found = stringIndexOf(text, from); found >= 0; found = stringIndexOf(text, from, at)) {
      result += stringSlice(text, at, found) + to;
      at = found + from.length;
    }
    return result + stringSlice(text, at);
  };
  const normalNewlines = (text) => replaceAll(replaceAll(replaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n", "\r\n");
  const escape = (text) => replaceAll(replaceAll(replaceAll(text, "\r", "%0D"), "\n", "%0A"), "\"", "%22");

  function newBoundary() {
    const random = new Bytes(16);
    native.random(random);
    let text = "----formdata-";
    for (let i = 0; i < 16; i++) text += core.stringPadStart(core.numberToString(random[i], 16), 2, "0");
    return text;
  }

  /** {bytes, boundary} of the entries of a FormData. */
  function encodeMultipart(form) {
    const entries = entriesOf(form);
    const boundary = newBoundary();
    const pieces = list();
    for (let i = 0; i < entries.length; i++) {
      const name = escape(normalNewlines(entries[i][0]));
      const value = entries[i][1];
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"`;
      if (typeof value === "string") {
        push(pieces, native.utf8Encode(`${head}\r\n\r\n${normalNewlines(value)}\r\n`));
        continue;
      }
      const type = blobs.typeOfBlob(value) || "application/octet-stream";
      push(pieces, native.utf8Encode(`${head}; filename="${escape(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`));
      push(pieces, blobs.bytesOfBlob(value));
      push(pieces, native.utf8Encode("\r\n"));
    }
    push(pieces, native.utf8Encode(`--${boundary}--\r\n`));
    return { __proto__: null, bytes: blobs.concatenate(pieces), boundary };
  }

  // ---- parsing

  const failure = () => new SafeTypeError("The body is not valid multipart/form-data.");

  /** The FormData in a body with that boundary; throws a TypeError. */
  function parseMultipart(bytes, boundary) {
    // One code unit for each byte: offsets in the text are offsets in the bytes.
    const text = native.latin1(bytes);
    const mark = `--${native.latin1(native.utf8Encode(boundary))}`;
    const entries = list();
    let at = stringIndexOf(text, mark);
    if (at !== 0 && (at < 2 || stringSlice(text, at - 2, at) !== "\r\n")) throw failure();
    at += mark.length;
    for (;;) {
      if (stringSlice(text, at, at + 2) === "--") {
        return makeForm(entries);
      }
      while (core.stringCharAt(text, at) === " " || core.stringCharAt(text, at) === "\t") at++;
      if (stringSlice(text, at, at + 2) !== "\r\n") throw failure();
      at += 2;
      const headers = { __proto__: null, name: undefined, filename: undefined, type: undefined };
      at = parseHeaders(bytes, text, at, headers);
      const end = stringIndexOf(text, `\r\n${mark}`, at - 2 >= 0 ? at : 0);
      if (end < 0 || headers.name === undefined) throw failure();
      const body = slice(bytes, at, end);
      push(entries, [headers.name, headers.filename === undefined
        ? blobs.decode(body)
        : blobs.makeFile(blobs.copyBytes(body), headers.filename, blobs.normalType(headers.type ?? "text/plain"))]);
      at = end + 2 + mark.length;
    }
  }

  const slice = (bytes, from, to) => new Bytes(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + from, to - from);

  // Reads headers up to the empty line and returns where the body starts.
  function parseHeaders(bytes, text, from, headers) {
    let at = from;
    for (;;) {
      const end = stringIndexOf(text, "\r\n", at);
      if (end < 0) throw failure();
      if (end === at) return end + 2;
      const colon = stringIndexOf(text, ":", at);
      if (colon < 0 || colon > end) throw failure();
      const name = core.stringToLowerCase(trim(stringSlice(text, at, colon)));
      if (name === "content-disposition") parseDisposition(bytes, text, colon + 1, end, headers);
      else if (name === "content-type") headers.type = trim(stringSlice(text, colon + 1, end));
      at = end + 2;
    }
  }

  function trim(text) {
    let from = 0;
    let to = text.length;
    while (from < to && (text[from] === " " || text[from] === "\t")) from++;
    while (to > from && (text[to - 1] === " " || text[to - 1] === "\t")) to--;
    return stringSlice(text, from, to);
  }

  // `form-data; name="…"; filename="…"`
  function parseDisposition(bytes, text, from, end, headers) {
    let at = stringIndexOf(text, ";", from);
    const kind = core.stringToLowerCase(trim(stringSlice(text, from, at < 0 || at > end ? end : at)));
    if (kind !== "form-data") throw failure();
    while (at >= 0 && at < end) {
      at++;
      while (core.stringCharAt(text, at) === " " || core.stringCharAt(text, at) === "\t") at++;
      const equals = stringIndexOf(text, "=", at);
      if (equals < 0 || equals > end) throw failure();
      const key = core.stringToLowerCase(stringSlice(text, at, equals));
      let value;
      if (text[equals + 1] === "\"") {
        const close = stringIndexOf(text, "\"", equals + 2);
        if (close < 0 || close > end) throw failure();
        value = slice(bytes, equals + 2, close);
        at = close + 1;
      } else {
        const next = stringIndexOf(text, ";", equals);
        at = next < 0 || next > end ? end : next;
        value = slice(bytes, equals + 1, at);
      }
      if (key === "name") headers.name = unescape(native.utf8Decode(value, false));
      else if (key === "filename") headers.filename = unescape(native.utf8Decode(value, false));
      if (at < end && text[at] !== ";") throw failure();
    }
  }
  const unescape = (text) => replaceAll(replaceAll(replaceAll(text, "%0A", "\n"), "%0D", "\r"), "%22", "\"");

  return { __proto__: null, FormData, isFormData: isForm, entriesOf, makeForm, encodeMultipart, parseMultipart };
}

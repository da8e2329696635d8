// Blob and File (File API, https://w3c.github.io/FileAPI/). A blob's bytes never change: slices share them.

export default function blob(core) {
  const {
    bufferByteLength, bufferResizable, Bytes, finish, isObject, isView, list, native, push, requireArguments, SafePromise,
    SafeTypeError, stringCharCodeAt, symbolIterator, toClamped, toDictionary, toDOMString, toEnum, toUSVString, typedArrayBuffer,
    typedArrayByteLength, typedArrayByteOffset, typedArraySet, typedArrayTag, viewBuffer, viewByteLength, viewByteOffset,
  } = core;
  const maxSafe = 9007199254740991;
  const chunkBytes = 65536;

  let bytesOf, typeOf, nameOfFile, lastModifiedOf;

  // ---- buffers

  const isBuffer = (value) => {
    try {
      bufferByteLength(value);
      return true;
    } catch {
      return false;
    }
  };

  // The bytes of a buffer source, without a copy; undefined for anything else.
  function viewOf(value) {
    if (isView(value)) {
      const typed = typedArrayTag(value) !== undefined;
      const buffer = typed ? typedArrayBuffer(value) : viewBuffer(value);
      if (!isBuffer(buffer)) throw new SafeTypeError("A view of a SharedArrayBuffer cannot be used here.");
      if (bufferResizable(buffer)) throw new SafeTypeError("A view of a resizable ArrayBuffer cannot be used here.");
      return typed
        ? () => new Bytes(buffer, typedArrayByteOffset(value), typedArrayByteLength(value))
        : () => new Bytes(buffer, viewByteOffset(value), viewByteLength(value));
    }
    if (!isObject(value) || !isBuffer(value)) return undefined;
    if (bufferResizable(value)) throw new SafeTypeError("A resizable ArrayBuffer cannot be used here.");
    return () => (bufferByteLength(value) === 0 ? new Bytes(0) : new Bytes(value));
  }

  function concatenate(pieces) {
    let total = 0;
    for (let i = 0; i < pieces.length; i++) total += typedArrayByteLength(pieces[i]);
    const all = new Bytes(total);
    for (let i = 0, at = 0; i < pieces.length; at += typedArrayByteLength(pieces[i++])) typedArraySet(all, pieces[i], at);
    return all;
  }

  const copyOf = (bytes) => {
    const copy = new Bytes(typedArrayByteLength(bytes));
    typedArraySet(copy, bytes);
    return copy;
  };

  // ---- the constructor's steps

  // BlobPart: (BufferSource or Blob or USVString)
  function toPart(value) {
    if (blobIs(value)) return () => bytesOf(value);
    return viewOf(value) ?? toUSVString(value);
  }

  /** https://w3c.github.io/FileAPI/#convert-line-endings-to-native; a program here runs on Linux. */
  function nativeEndings(text) {
    let result = "";
    let from = 0;
    for (let at = core.stringIndexOf(text, "\r"); at >= 0; at = core.stringIndexOf(text, "\r", from)) {
      result += `${core.stringSlice(text, from, at)}\n`;
      from = at + 1;
      if (stringCharCodeAt(text, from) === 10) from++;
    }
    return result + core.stringSlice(text, from);
  }

  function partsToBytes(parts, endings) {
    const pieces = list();
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i];
      if (typeof part === "function") push(pieces, part());
      else push(pieces, native.utf8Encode(endings === "native" ? nativeEndings(part) : part));
    }
    return concatenate(pieces);
  }

  function normalType(type) {
    for (let i = 0; i < type.length; i++) {
      const unit = stringCharCodeAt(type, i);
      if (unit < 0x20 || unit > 0x7e) return "";
    }
    return core.stringToLowerCase(type);
  }

  const toEndings = (value) => toEnum(value, ["transparent", "native"], "The option endings");
  const bagMembers = () => [["endings", toEndings, "transparent"], ["type", toDOMString, ""]];
  const toLongLong = (value) => {
    const number = +value;
    if (number - number !== 0) return 0;
    return (number < 0 ? -core.floor(-number) : core.floor(number)) + 0;
  };
  const fileMembers = () => [...bagMembers(), ["lastModified", toLongLong]];

  const toParts = (value) => {
    const method = isObject(value) ? value[symbolIterator] : undefined;
    return core.iterate(value, method, toPart, "The parts");
  };

  const made = { __proto__: null };
  let blobIs, fileIs;

  const promise = (steps) => new SafePromise((resolve) => resolve(steps()));

  class Blob {
    #bytes;
    #type;
    static {
      blobIs = (value) => isObject(value) && #bytes in value;
      bytesOf = (value) => value.#bytes;
      typeOf = (value) => value.#type;
    }
    constructor(blobParts = undefined, options = undefined) {
      native.brand(this);
      if (options === made) {
        this.#bytes = blobParts.bytes;
        this.#type = blobParts.type;
        return;
      }
      const parts = blobParts === undefined ? [] : toParts(blobParts);
      const { endings, type } = toDictionary(options, bagMembers(), "The options");
      this.#bytes = partsToBytes(parts, endings);
      this.#type = normalType(type);
    }
    get size() {
      return typedArrayByteLength(this.#bytes);
    }
    get type() {
      return this.#type;
    }
    slice(start = undefined, end = undefined, contentType = undefined) {
      const bytes = this.#bytes;
      const size = typedArrayByteLength(bytes);
      const place = (value, fallback) => {
        if (value === undefined) return fallback;
        const at = toClamped(value, -maxSafe, maxSafe);
        return at < 0 ? core.max(size + at, 0) : core.min(at, size);
      };
      const from = place(start, 0);
      const to = place(end, size);
      const type = contentType === undefined ? "" : normalType(toDOMString(contentType));
      return makeBlob(new Bytes(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + from, core.max(to - from, 0)), type);
    }
    stream() {
      return streamOf(this.#bytes);
    }
    text() {
      return promise(() => decode(this.#bytes));
    }
    arrayBuffer() {
      return promise(() => typedArrayBuffer(copyOf(this.#bytes)));
    }
    bytes() {
      return promise(() => copyOf(this.#bytes));
    }
  }

  class File extends Blob {
    #name;
    #lastModified;
    static {
      fileIs = (value) => isObject(value) && #name in value;
      nameOfFile = (file) => file.#name;
      lastModifiedOf = (file) => file.#lastModified;
    }
    constructor(fileBits, fileName, options = undefined) {
      if (options === made) {
        super(fileBits, made);
        this.#name = fileName;
        this.#lastModified = fileBits.lastModified;
        return;
      }
      requireArguments("File", arguments.length, 2);
      const parts = toParts(fileBits);
      const name = toUSVString(fileName);
      const { endings, type, lastModified } = toDictionary(options, fileMembers(), "The options");
      super({ __proto__: null, bytes: partsToBytes(parts, endings), type: normalType(type) }, made);
      this.#name = name;
      this.#lastModified = lastModified ?? core.dateNow();
    }
    get name() {
      return this.#name;
    }
    get lastModified() {
      return this.#lastModified;
    }
  }
  finish(Blob, { __proto__: null, name: "Blob" });
  finish(File, { __proto__: null, name: "File" });
  core.defineProperty(File, "length", { __proto__: null, value: 2, configurable: true });

  const makeBlob = (bytes, type) => new Blob({ __proto__: null, bytes, type }, made);
  const makeFile = (bytes, name, type, lastModified = core.dateNow()) => new File({ __proto__: null, bytes, type, lastModified }, name, made);

  // A byte stream over bytes that it does not give away: each chunk is a copy. The handle is that of setUpReadableBytes.
  function openStream(bytes) {
    const size = typedArrayByteLength(bytes);
    let at = 0;
    const handle = core.need("streams").setUpReadableBytes({
      __proto__: null,
      pull() {
        if (at === size) {
          handle.close();
          return;
        }
        const length = core.min(chunkBytes, size - at);
        handle.enqueue(copyOf(new Bytes(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + at, length)));
        at += length;
      },
    });
    return handle;
  }
  const streamOf = (bytes) => openStream(bytes).stream;

  /** "UTF-8 decode": without a byte order mark, malformed sequences replaced. */
  function decode(bytes) {
    const text = native.utf8Decode(bytes, false);
    return stringCharCodeAt(text, 0) === 0xfeff ? core.stringSlice(text, 1) : text;
  }

  // ---- blob: URLs (File API, 8). They live as long as the execution.

  const urls = new core.SafeMap();

  function createObjectURL(value) {
    if (!blobIs(value)) throw new SafeTypeError("The argument of URL.createObjectURL is not a Blob.");
    const random = new Bytes(16);
    native.random(random);
    random[6] = (random[6] & 0x0f) | 0x40;
    random[8] = (random[8] & 0x3f) | 0x80;
    let url = "blob:null/";
    for (let i = 0; i < 16; i++) {
      if (i === 4 || i === 6 || i === 8 || i === 10) url += "-";
      url += core.stringPadStart(core.numberToString(random[i], 16), 2, "0");
    }
    core.mapSet(urls, url, value);
    return url;
  }
  const revokeObjectURL = (url) => {
    core.mapDelete(urls, url);
  };
  /** The blob of a blob: URL, whose fragment is passed over; undefined when it names none. */
  const resolveObjectURL = (url) => {
    const at = core.stringIndexOf(url, "#");
    return core.mapGet(urls, at < 0 ? url : core.stringSlice(url, 0, at));
  };

  return {
    __proto__: null,
    createObjectURL, revokeObjectURL, resolveObjectURL,
    Blob, File, isBlob: blobIs, isFile: fileIs, makeBlob, makeFile, bytesOfBlob: bytesOf, typeOfBlob: typeOf,
    nameOfFile, lastModifiedOf, viewOf, copyBytes: copyOf, decode, openStream,
    concatenate, normalType,
  };
}

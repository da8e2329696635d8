// blob: URLs (Fetch, 4.3 "scheme fetch": https://fetch.spec.whatwg.org/#scheme-fetch).

export function makeBlobs(core, headers, respond) {
  const { SafeTypeError, stringCharAt: charAt, stringCharCodeAt, stringSlice, stringStartsWith } = core;

  // Fetch, 2.2.2 "parse a single range header value", with whitespace allowed: [start, end], null for an absent one;
  // undefined is failure.
  function parseRange(value) {
    if (!stringStartsWith(value, "bytes")) return undefined;
    let at = 5;
    const skip = () => {
      while (charAt(value, at) === " " || charAt(value, at) === "\t") at++;
    };
    const number = () => {
      const from = at;
      while (at < value.length && stringCharCodeAt(value, at) >= 48 && stringCharCodeAt(value, at) <= 57) at++;
      return at === from ? null : +stringSlice(value, from, at);
    };
    skip();
    if (charAt(value, at++) !== "=") return undefined;
    skip();
    const start = number();
    skip();
    if (charAt(value, at++) !== "-") return undefined;
    skip();
    const end = number();
    if (at < value.length || (start === null && end === null) || (start !== null && end !== null && start > end)) return undefined;
    return [start, end];
  }

  /** The part of `length` bytes that a Range header asks for: [first, last]. */
  function rangeOf(value, length) {
    const range = parseRange(value);
    if (range === undefined) throw new SafeTypeError("fetch: the Range header is not a single range of bytes.");
    let first = range[0];
    let last = range[1];
    if (first === null) {
      first = core.max(length - last, 0);
      last = length - 1;
    }
    if (first >= length) throw new SafeTypeError("fetch: the range begins after the end of the blob.");
    return [first, last === null || last >= length ? length - 1 : last];
  }

  return function fromBlob(request, url) {
    const blobs = core.need("blob");
    const blob = request.method === "GET" ? request.blob ?? blobs.resolveObjectURL(url) : undefined;
    if (blob === undefined) throw new SafeTypeError("fetch: the blob: URL names no blob, or the method is not GET.");
    const bytes = blobs.bytesOfBlob(blob);
    const size = core.typedArrayByteLength(bytes);
    const type = blobs.typeOfBlob(blob);
    const wanted = headers.get(request.headers, "range");
    if (wanted === null) return respond(url, 200, "OK", bytes, [["Content-Length", `${size}`], ["Content-Type", type]]);
    const range = rangeOf(wanted, size);
    const first = range[0];
    const last = range[1];
    const part = new core.Bytes(core.typedArrayBuffer(bytes), core.typedArrayByteOffset(bytes) + first, last - first + 1);
    return respond(url, 206, "Partial Content", blobs.copyBytes(part), [
      ["Content-Length", `${last - first + 1}`], ["Content-Type", type], ["Content-Range", `bytes ${first}-${last}/${size}`],
    ]);
  };
}

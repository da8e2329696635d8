// Bodies (Fetch, 2.2.4 and 5.3: https://fetch.spec.whatwg.org/#bodies). A body given as bytes becomes a stream only when
// a program asks for it.

export function makeBodies(core, headers, mime) {
  const {
    Bytes, isObject, native, parseJSON, SafePromise, SafeTypeError, toUSVString, typedArrayBuffer, typedArrayTag,
  } = core;
  const blobs = () => core.need("blob");
  const streams = () => core.need("streams");

  class Body {
    bytes; // undefined when there is only a stream
    stream;
    used = false; // consumed without a stream
    signal; // whose abort fails the reading of bytes, or undefined
    constructor(bytes, stream, signal = undefined) {
      this.bytes = bytes;
      this.stream = stream;
      this.signal = signal;
    }
    isAborted() {
      return this.signal !== undefined && core.need("abort").isAborted(this.signal);
    }
    getStream() {
      if (this.stream === undefined) {
        const handle = blobs().openStream(this.bytes);
        this.stream = handle.stream;
        this.followSignal(handle);
        if (this.used) streams().acquireReader(this.stream).cancel(undefined);
      }
      return this.stream;
    }
    // The stream of the handle fails with the signal.
    followSignal(handle) {
      if (this.signal === undefined || this.used) return;
      const { addAbortAlgorithm, signalReason } = core.need("abort");
      const fail = () => handle.error(signalReason(this.signal));
      if (this.isAborted()) fail();
      else addAbortAlgorithm(this.signal, fail);
    }
    isUsed() {
      return this.stream === undefined ? this.used : streams().isDisturbed(this.stream);
    }
    isUnusable() {
      return this.isUsed() || (this.stream !== undefined && streams().isReadableLocked(this.stream));
    }
    /** success(Uint8Array of the program's own) or failure(error) */
    consume(success, failure) {
      if (this.stream === undefined) {
        this.used = true;
        if (this.isAborted()) failure(core.need("abort").signalReason(this.signal));
        else success(blobs().copyBytes(this.bytes));
      } else {
        streams().readAllBytes(streams().acquireReader(this.stream), success, failure);
      }
    }
    /** Ends a stream that nobody will read. */
    cancel(reason) {
      if (this.stream !== undefined) core.promiseThen(streams().acquireReader(this.stream).cancel(reason), undefined, () => {});
    }
    clone() {
      if (this.stream === undefined) return new Body(this.bytes, undefined, this.signal);
      const branches = streams().teeStream(this.stream, cloneChunk);
      this.stream = branches[0];
      return new Body(undefined, branches[1]);
    }
    /** Takes the body over for another object: this one counts as used. */
    take() {
      if (this.stream === undefined) {
        this.used = true;
        return new Body(this.bytes, undefined);
      }
      const through = streams().setUpTransform({ __proto__: null, transform: (chunk) => through.enqueue(chunk) });
      core.promiseThen(streams().pipeStream(this.stream, through.writable), undefined, () => {});
      return new Body(undefined, through.readable);
    }
  }

  function cloneChunk(chunk) {
    if (isObject(chunk) && typedArrayTag(chunk) === "Uint8Array") return blobs().copyBytes(chunk);
    const { structuredClone } = core.need("clone");
    return structuredClone(chunk);
  }

  const isStream = (value) => {
    try {
      streams().readableOf(value);
      return true;
    } catch {
      return false;
    }
  };

  /** Converts to BodyInit: a function that extracts it, {body, type}; null stays null. */
  function toBodyInit(value) {
    if (value === null || value === undefined) return null;
    if (isObject(value)) {
      if (isStream(value)) return streamInit(value);
      if (blobs().isBlob(value)) {
        return () => ({ __proto__: null, body: new Body(blobs().bytesOfBlob(value), undefined), type: blobs().typeOfBlob(value) || null });
      }
      const view = blobs().viewOf(value);
      if (view !== undefined) return () => ({ __proto__: null, body: new Body(blobs().copyBytes(view()), undefined), type: null });
      if (core.need("formdata").isFormData(value)) {
        return () => {
          const { bytes, boundary } = core.need("formdata").encodeMultipart(value);
          return { __proto__: null, body: new Body(bytes, undefined), type: `multipart/form-data; boundary=${boundary}` };
        };
      }
      const pairs = core.loaded("url")?.pairsOf(value);
      if (pairs !== undefined) return () => textBody(core.need("urls").serializeForm(pairs), "application/x-www-form-urlencoded;charset=UTF-8");
    }
    const text = toUSVString(value);
    return () => textBody(text, "text/plain;charset=UTF-8");
  }
  const textBody = (text, type) => ({ __proto__: null, body: new Body(native.utf8Encode(text), undefined), type });

  function streamInit(stream) {
    const extract = () => {
      if (streams().isDisturbed(stream) || streams().isReadableLocked(stream)) throw new SafeTypeError("The body's stream is locked or was read from.");
      return { __proto__: null, body: new Body(undefined, stream), type: null };
    };
    extract.isStream = true;
    return extract;
  }

  function consume(slots, convert) {
    return new SafePromise((resolve, reject) => {
      const { body } = slots;
      if (body !== null && body.isUnusable()) throw new SafeTypeError("The body was used already, or is locked.");
      const success = (bytes) => {
        try {
          resolve(convert(bytes));
        } catch (error) {
          reject(error);
        }
      };
      if (body === null) success(new Bytes(0));
      else body.consume(success, reject);
    });
  }

  const parameterOfType = (type, name) => {
    const parsed = mime.parse(type);
    return parsed === null ? undefined : mime.parameterOf(parsed, name);
  };
  const mimeOf = (slots) => mime.extract(headers.get(slots.headers, "content-type"));

  function toForm(slots, bytes) {
    const type = mimeOf(slots);
    const forms = core.need("formdata");
    if (type !== null && type.essence === "multipart/form-data") {
      const boundary = mime.parameterOf(type, "boundary");
      if (boundary === undefined) throw new SafeTypeError("The multipart body's type names no boundary.");
      return forms.parseMultipart(bytes, boundary);
    }
    if (type !== null && type.essence === "application/x-www-form-urlencoded") {
      return forms.makeForm(core.need("urls").parseForm(native.utf8Decode(bytes, false)));
    }
    throw new SafeTypeError("The body is neither multipart/form-data nor application/x-www-form-urlencoded.");
  }

  /** Adds the members of the mixin to a class; slotsOf(object) → {headers, body} throws on a wrong object. */
  function mixIn(constructor, slotsOf) {
    const using = (self, convert) => {
      try {
        const slots = slotsOf(self);
        return consume(slots, (bytes) => convert(bytes, slots));
      } catch (error) {
        return core.promiseReject(error);
      }
    };
    const members = {
      get body() {
        const { body } = slotsOf(this);
        return body === null ? null : body.getStream();
      },
      get bodyUsed() {
        const { body } = slotsOf(this);
        return body !== null && body.isUsed();
      },
      arrayBuffer() {
        return using(this, typedArrayBuffer);
      },
      blob() {
        return using(this, (bytes, slots) => {
          const type = mimeOf(slots);
          return blobs().makeBlob(bytes, type === null ? "" : mime.serialize(type));
        });
      },
      bytes() {
        return using(this, (bytes) => bytes);
      },
      formData() {
        return using(this, (bytes, slots) => toForm(slots, bytes));
      },
      json() {
        return using(this, (bytes) => parseJSON(blobs().decode(bytes)));
      },
      text() {
        return using(this, (bytes) => blobs().decode(bytes));
      },
    };
    const keys = core.ownKeys(members);
    for (let i = 0; i < keys.length; i++) {
      const descriptor = core.setPrototypeOf(core.getOwnPropertyDescriptor(members, keys[i]), null);
      core.defineProperty(constructor.prototype, keys[i], descriptor);
    }
  }

  return { __proto__: null, Body, toBodyInit, mixIn, textBody, mimeOf, parameterOfType };
}

// What other parts' platform objects are copied or transferred as. The parts are loaded already when such an object is
// there; they are found by its class string, so that a clone loads no other.

export function makePlatform(core, { register, cloneWithTransfer }) {
  const { getOwnPropertyDescriptor, getPrototypeOf, need, toStringTag } = core;
  const known = { __proto__: null };

  /** Registers what object may be an instance of; false when there was nothing new. */
  function learn(object) {
    let found = false;
    for (let p = getPrototypeOf(object); p !== null; p = getPrototypeOf(p)) {
      const tag = getOwnPropertyDescriptor(p, toStringTag)?.value;
      if (typeof tag !== "string" || known[tag] === undefined) continue;
      known[tag]();
      known[tag] = undefined;
      found = true;
    }
    return found;
  }

  // File API, 3 and 4: the bytes never change, so a copy shares them.
  known.Blob = () => {
    const { Blob, bytesOfBlob, isBlob, isFile, makeBlob, makeFile, typeOfBlob } = need("blob");
    register(Blob, {
      __proto__: null,
      is: isBlob,
      clone: (blob) =>
        isFile(blob) ? makeFile(bytesOfBlob(blob), blob.name, typeOfBlob(blob), blob.lastModified) : makeBlob(bytesOfBlob(blob), typeOfBlob(blob)),
    });
  };

  // HTML, 9.4.4
  known.MessagePort = () => {
    const { canTransferPort, isPort, MessagePort, transferPort } = need("messaging");
    register(MessagePort, { __proto__: null, is: isPort, transfer: transferPort, canTransfer: canTransferPort });
  };

  // Web Cryptography, 13.4
  known.CryptoKey = () => {
    const { CryptoKey, copyKey } = need("subtle");
    register(CryptoKey, { __proto__: null, clone: copyKey });
  };

  // Streams, 8.2 to 8.4: the old stream is locked, and each chunk is cloned on its way to the twin.
  const copy = (value) => cloneWithTransfer(value, []).value;
  const copyReason = (reason) => {
    try {
      return copy(reason);
    } catch (error) {
      return error;
    }
  };

  known.ReadableStream = () => {
    const { ReadableStream, isReadableLocked, readableOf } = need("streams");
    register(ReadableStream, {
      __proto__: null,
      is: branded(readableOf),
      canTransfer: (stream) => !isReadableLocked(stream),
      transfer: transferReadable,
    });
  };

  function transferReadable(stream) {
    const { acquireReader, setUpReadable } = need("streams");
    const reader = acquireReader(stream);
    const pull = () =>
      new core.SafePromise((done) => {
        reader.read({
          __proto__: null,
          chunk(chunk) {
            try {
              twin.enqueue(copy(chunk));
            } catch (error) {
              twin.error(error);
              reader.cancel(error);
            }
            done();
          },
          close() {
            twin.close();
            done();
          },
          error(reason) {
            twin.error(copyReason(reason));
            done();
          },
        });
      });
    const twin = setUpReadable({ __proto__: null, pull, cancel: (reason) => reader.cancel(copyReason(reason)), highWaterMark: 0 });
    return twin.stream;
  }

  known.WritableStream = () => {
    const { WritableStream, writableOf } = need("streams");
    register(WritableStream, {
      __proto__: null,
      is: branded(writableOf),
      canTransfer: (stream) => !stream.locked,
      transfer: transferWritable,
    });
  };

  function transferWritable(stream) {
    const writer = stream.getWriter();
    writer.closed.catch(() => {});
    writer.ready.catch(() => {});
    return need("streams").setUpWritable({
      __proto__: null,
      async write(chunk) {
        const copied = copyOrAbort(writer, chunk);
        await writer.ready;
        await writer.write(copied);
      },
      close: () => writer.close(),
      abort: (reason) => writer.abort(copyReason(reason)),
    });
  }

  function copyOrAbort(writer, chunk) {
    try {
      return copy(chunk);
    } catch (error) {
      writer.abort(error).catch(() => {});
      throw error;
    }
  }

  known.TransformStream = () => {
    const { TransformStream, isReadableLocked, readableOf, setUpTransform, transformOf, writableOf } = need("streams");
    register(TransformStream, {
      __proto__: null,
      is: branded(transformOf),
      canTransfer: (stream) => !isReadableLocked(stream.readable) && !stream.writable.locked,
      transfer(stream) {
        const twin = setUpTransform({ __proto__: null }).stream;
        const slots = transformOf(twin);
        slots.readable = readableOf(transferReadable(stream.readable));
        slots.writable = writableOf(transferWritable(stream.writable));
        return twin;
      },
    });
  };

  // A function that throws on other objects, as a test.
  const branded = (slotsOf) => (object) => {
    try {
      return slotsOf(object) !== undefined;
    } catch {
      return false;
    }
  };

  return learn;
}

// The Compression Standard (https://compression.spec.whatwg.org/). The host compresses; its state lies behind a handle,
// which is opened at the first chunk and closed when the stream ends in any way.

export default function compression(core) {
  const {
    bufferByteLength, finish, isView, native, requireArguments, SafeTypeError, toEnum, typedArrayBuffer, typedArrayTag, viewBuffer,
  } = core;
  const formats = ["brotli", "deflate", "deflate-raw", "gzip"];

  // Converts to an IDL BufferSource, neither [AllowShared] nor [AllowResizable].
  function toBufferSource(value) {
    let buffer = value;
    if (isView(value)) buffer = typedArrayTag(value) === undefined ? viewBuffer(value) : typedArrayBuffer(value);
    try {
      bufferByteLength(buffer);
    } catch {
      throw new SafeTypeError("The chunk is neither an ArrayBuffer nor a view of one.");
    }
    if (core.bufferResizable(buffer)) throw new SafeTypeError("The chunk is of a resizable ArrayBuffer.");
    return value;
  }

  const classes = { __proto__: null, TypeError: SafeTypeError, RangeError: core.SafeRangeError };
  function op(name, handle, input) {
    try {
      return native.op(`compression.${name}`, handle, input);
    } catch (error) {
      const { message } = error;
      const end = core.stringIndexOf(message, ": ");
      const Class = classes[core.stringSlice(message, 0, end)];
      if (Class !== undefined) throw new Class(core.stringSlice(message, end + 2));
      throw error;
    }
  }

  function makeStream(format, decompress) {
    let handle;
    const open = () => (handle ??= op("open", format, decompress));
    function close() {
      if (handle !== undefined) op("close", handle);
      handle = 0; // of no stream
    }
    function emit(output) {
      while (output !== undefined) {
        if (core.typedArrayByteLength(output) > 0) stream.enqueue(output);
        output = op("read", handle);
      }
    }
    const stream = core.need("streams").setUpTransform({
      __proto__: null,
      transform(chunk) {
        toBufferSource(chunk);
        emit(op("write", open(), chunk));
      },
      flush() {
        emit(op("finish", open()));
        close();
      },
      cancel: close,
    });
    return stream;
  }

  class CompressionStream {
    #stream;
    constructor(format) {
      requireArguments("CompressionStream", arguments.length, 1);
      this.#stream = makeStream(toEnum(format, formats, "The format"), false);
    }
    get readable() {
      return this.#stream.readable;
    }
    get writable() {
      return this.#stream.writable;
    }
  }

  class DecompressionStream {
    #stream;
    constructor(format) {
      requireArguments("DecompressionStream", arguments.length, 1);
      this.#stream = makeStream(toEnum(format, formats, "The format"), true);
    }
    get readable() {
      return this.#stream.readable;
    }
    get writable() {
      return this.#stream.writable;
    }
  }

  return {
    __proto__: null,
    CompressionStream: finish(CompressionStream, { __proto__: null, name: "CompressionStream" }),
    DecompressionStream: finish(DecompressionStream, { __proto__: null, name: "DecompressionStream" }),
  };
}

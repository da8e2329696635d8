// BufferSource and ArrayBufferView (Web IDL, https://webidl.spec.whatwg.org/#js-buffer-source-types, 3.2.24).

export function makeBuffers(core) {
  const {
    bufferByteLength, bufferResizable, Bytes, isView, native, SafeTypeError, typedArrayBuffer, typedArrayByteLength, typedArrayByteOffset, typedArrayTag,
    viewBuffer, viewByteLength, viewByteOffset,
  } = core;

  // The bytes of a view, as they are in its buffer.
  function bytesOfView(view) {
    if (typedArrayTag(view) === undefined) return new Bytes(viewBuffer(view), viewByteOffset(view), viewByteLength(view));
    return new Bytes(typedArrayBuffer(view), typedArrayByteOffset(view), typedArrayByteLength(view));
  }

  const isBuffer = (value) => native.classOf(value) === "ArrayBuffer";
  const isShared = (value) => native.classOf(value) === "SharedArrayBuffer";
  const bufferOf = (view) => (typedArrayTag(view) === undefined ? viewBuffer(view) : typedArrayBuffer(view));

  // Converts to a BufferSource and gives its bytes without a copy; the bytes of a detached buffer are none. shared is
  // whether SharedArrayBuffer may be behind it ([AllowShared]).
  function bytesOf(value, what, shared = false) {
    const view = isView(value);
    const buffer = view ? bufferOf(value) : value;
    if (isBuffer(buffer)) {
      if (bufferResizable(buffer)) throw new SafeTypeError(`${what} is resizable.`);
      if (bufferByteLength(buffer) === 0) return new Bytes(0);
    } else if (!shared || !isShared(buffer)) {
      throw new SafeTypeError(`${what} is not an ArrayBuffer or a view of one.`);
    }
    return view ? bytesOfView(value) : new Bytes(buffer);
  }

  return { __proto__: null, bytesOf, bytesOfView, bufferOf, isBuffer, isShared };
}

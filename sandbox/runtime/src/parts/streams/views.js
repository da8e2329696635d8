// ArrayBuffers and their views, looked at by internal slots (Streams, 8.3: https://streams.spec.whatwg.org/#misc-abstract-ops).

import {
  Bytes, core, bufferByteLength, bufferResizable, bufferTransfer, isView, SafeArrayBuffer, SafeTypeError, typedArrayBuffer,
  typedArrayByteLength, typedArrayByteOffset, typedArrayLength, typedArraySet, typedArrayTag, viewBuffer, viewByteLength,
  viewByteOffset, viewConstructors,
} from "./core.js";

// Float16Array is not there yet when the snapshot is built.
const constructorOf = (name) => viewConstructors[name] ?? core.global[name];

/** {name, buffer, byteOffset, byteLength, elementSize} of a view. */
export function describe(view) {
  const name = typedArrayTag(view);
  if (name === undefined) {
    return {
      __proto__: null, name: "DataView", buffer: viewBuffer(view), byteOffset: viewByteOffset(view), byteLength: viewByteLength(view), elementSize: 1,
    };
  }
  return {
    __proto__: null, name, buffer: typedArrayBuffer(view), byteOffset: typedArrayByteOffset(view), byteLength: typedArrayByteLength(view),
    elementSize: constructorOf(name).BYTES_PER_ELEMENT,
  };
}

function isShared(buffer) {
  try {
    bufferByteLength(buffer);
    return false;
  } catch {
    return true;
  }
}

/** Converts to an IDL ArrayBufferView, neither [AllowShared] nor [AllowResizable]. */
export function toView(value) {
  if (!isView(value)) throw new SafeTypeError("The argument is not a view of an ArrayBuffer.");
  const buffer = typedArrayTag(value) === undefined ? viewBuffer(value) : typedArrayBuffer(value);
  if (isShared(buffer)) throw new SafeTypeError("The view is of a SharedArrayBuffer.");
  if (bufferResizable(buffer)) throw new SafeTypeError("The view is of a resizable ArrayBuffer.");
  return value;
}

/** TransferArrayBuffer. Throws where the buffer cannot be detached (a WebAssembly memory). */
export const transfer = (buffer) => bufferTransfer(buffer);

/** A view of the kind of another, `length` counted in elements. */
export const makeView = (name, buffer, byteOffset, length) => new (constructorOf(name))(buffer, byteOffset, length);

/** A new buffer with a copy of some bytes. */
export function copyOf(buffer, byteOffset, byteLength) {
  const copy = new Bytes(byteLength);
  typedArraySet(copy, new Bytes(buffer, byteOffset, byteLength));
  return typedArrayBuffer(copy);
}

/** CopyDataBlockBytes. */
export function copyBytes(to, toOffset, from, fromOffset, count) {
  typedArraySet(new Bytes(to, toOffset, count), new Bytes(from, fromOffset, count));
}

export const newBuffer = (byteLength) => new SafeArrayBuffer(byteLength);
export { bufferByteLength, typedArrayLength };

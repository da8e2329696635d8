// What the files of this part take from the core, set once before any of them runs.

export let core;
export let apply, defineProperty, freeze, getOwnPropertyDescriptor, setPrototypeOf, list, push;
export let SafePromise, promiseThen, SafeTypeError, SafeRangeError, symbolIterator, asyncIterator, AsyncIteratorPrototype;
export let isView, bufferByteLength, bufferDetached, bufferResizable, bufferTransfer, SafeArrayBuffer, Bytes;
export let typedArrayTag, typedArrayBuffer, typedArrayByteLength, typedArrayByteOffset, typedArrayLength, typedArraySet;
export let viewBuffer, viewByteLength, viewByteOffset, viewConstructors;
export let requireArguments, isObject, toDictionary, toEnforced, toBoolean, toEnum, toCallback, toUnrestrictedDouble, required;
export let finish, illegalConstructor, toStringTag, native, SafeMap, mapGet, mapSet;

export function useCore(from) {
  core = from;
  ({
    apply, defineProperty, freeze, getOwnPropertyDescriptor, setPrototypeOf, list, push,
    SafePromise, promiseThen, SafeTypeError, SafeRangeError, symbolIterator, asyncIterator, AsyncIteratorPrototype,
    isView, bufferByteLength, bufferDetached, bufferResizable, bufferTransfer, SafeArrayBuffer, Bytes,
    typedArrayTag, typedArrayBuffer, typedArrayByteLength, typedArrayByteOffset, typedArrayLength, typedArraySet,
    viewBuffer, viewByteLength, viewByteOffset, viewConstructors,
    requireArguments, isObject, toDictionary, toEnforced, toBoolean, toEnum, toCallback, toUnrestrictedDouble, required,
    finish, illegalConstructor, toStringTag, native, SafeMap, mapGet, mapSet,
  } = from);
}

/** Given as the only argument, it makes a constructor leave the object bare for the library to fill. */
export const bare = { __proto__: null };

// Bytes on the console: buffers in hexadecimal, typed arrays as numbers.

import { trimHead } from "./inspect-head.js";
import { namedProperties, noteLeftOut } from "./inspect-lists.js";
import {
  bufferByteLength,
  Bytes,
  list,
  min,
  numberToString,
  push,
  stringPadStart,
  typedArrayLength,
  viewBuffer,
  viewByteLength,
  viewByteOffset,
} from "../../primordials.js";

const maxItems = 100;
const maxBytes = 50;

/** The names that native.classOf gives typed arrays. */
export const typedArrays = [
  "Int8Array",
  "Uint8Array",
  "Uint8ClampedArray",
  "Int16Array",
  "Uint16Array",
  "Int32Array",
  "Uint32Array",
  "Float16Array",
  "Float32Array",
  "Float64Array",
  "BigInt64Array",
  "BigUint64Array",
];

export function showTypedArray(inspector, value, at) {
  const length = typedArrayLength(value);
  const head = inspector.head(value, at.kind, length);
  if (inspector.isTooDeep(at)) return `[${trimHead(head, at.kind)}]`;
  const parts = list();
  const shown = min(length, maxItems);
  for (let i = 0; i < shown; i++) push(parts, inspector.primitive(value[i]));
  noteLeftOut(parts, length - shown);
  namedProperties(inspector, parts, value, at, length);
  return inspector.wrap(head, "[", parts, "]", at, true);
}

export function showArrayBuffer(inspector, value, at) {
  const head = inspector.head(value, at.kind);
  if (inspector.isTooDeep(at)) return `[${trimHead(head, at.kind)}]`;
  const parts = list();
  const length = at.kind === "ArrayBuffer" ? bufferByteLength(value) : typedArrayLength(new Bytes(value));
  push(parts, contents(value));
  push(parts, `byteLength: ${length}`);
  inspector.properties(parts, value, at, false);
  return inspector.wrap(head, "{", parts, "}", at);
}

function contents(buffer) {
  let bytes;
  try {
    bytes = new Bytes(buffer);
  } catch {
    return "(detached)";
  }
  const length = typedArrayLength(bytes);
  let text = "";
  for (let i = 0; i < length && i < maxBytes; i++) {
    text += (i > 0 ? " " : "") + stringPadStart(numberToString(bytes[i], 16), 2, "0");
  }
  if (length > maxBytes) text += ` ... ${length - maxBytes} more byte${length - maxBytes === 1 ? "" : "s"}`;
  return `[Uint8Contents]: <${text}>`;
}

export function showDataView(inspector, value, at) {
  const head = inspector.head(value, "DataView");
  if (inspector.isTooDeep(at)) return `[${trimHead(head, "DataView")}]`;
  const parts = list();
  try {
    push(parts, `byteLength: ${viewByteLength(value)}`);
    push(parts, `byteOffset: ${viewByteOffset(value)}`);
  } catch {
    push(parts, "(detached)");
  }
  push(parts, `buffer: ${inspector.show(viewBuffer(value), at.level + 1, at.indent + 2)}`);
  inspector.properties(parts, value, at, false);
  return inspector.wrap(head, "{", parts, "}", at);
}

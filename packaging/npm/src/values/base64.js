// Bytes, and base64 (RFC 4648, section 4, with padding) by the fastest way that the runtime has.

import { refuse } from "../errors.js";

const { Buffer } = globalThis;
const chunk = 0x2000;

/** The bytes of a view, or of a buffer. */
export const bytesOf = (source) => ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : new Uint8Array(source);

/** The string that has these code units. */
export function stringOf(units) {
  let text = "";
  for (let i = 0; i < units.length; i += chunk) text += String.fromCharCode(...units.subarray(i, i + chunk));
  return text;
}

/** The base64 text of a view's bytes, or of a buffer's. */
export function toBase64(source) {
  const bytes = bytesOf(source);
  if (bytes.toBase64) return bytes.toBase64();
  return Buffer ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64") : btoa(stringOf(bytes));
}

/** Reads what toBase64 writes, into memory of its own. Throws where text is anything else, or no string. */
export function fromBase64(text) {
  const bytes = read(String(text));
  const { length } = bytes;
  // Readers pass over what is no letter, and over stray bits in the last one: one text for each value.
  const tail = toBase64(bytes.subarray(length - (length % 3 || 3)));
  if (text.length !== Math.ceil(length / 3) * 4 || !text.endsWith(tail) || text.includes("-") || text.includes("_")) refuse("it is no base64");
  return bytes;
}

function read(text) {
  if (Buffer) return new Uint8Array(Buffer.from(text, "base64")); // whose own memory may be others' too
  return Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
}

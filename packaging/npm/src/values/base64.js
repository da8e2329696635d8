// Base64 (RFC 4648, section 4, with padding) by the fastest way that the runtime has.

const { Buffer } = globalThis;
const chunk = 0x2000;

export function toBase64(bytes) {
  if (bytes.toBase64) return bytes.toBase64();
  if (Buffer) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  let text = "";
  for (let i = 0; i < bytes.length; i += chunk) text += String.fromCharCode(...bytes.subarray(i, i + chunk));
  return btoa(text);
}

/** Reads what toBase64 writes, into memory of its own. Throws where text is anything else, or no string. */
export function fromBase64(text) {
  const bytes = read(String(text));
  const { length } = bytes;
  // Readers pass over what is no letter, and over stray bits in the last one: one text for each value.
  const tail = toBase64(bytes.subarray(length - (length % 3 || 3)));
  if (text.length !== Math.ceil(length / 3) * 4 || !text.endsWith(tail) || text.includes("-") || text.includes("_")) throw new TypeError("it is no base64");
  return bytes;
}

function read(text) {
  if (Buffer) {
    const bytes = Buffer.from(text, "base64");
    return new Uint8Array(bytes.length === bytes.buffer.byteLength ? bytes.buffer : bytes); // small ones share their memory with others
  }
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const units = atob(text);
  const bytes = new Uint8Array(units.length);
  for (let i = 0; i < units.length; i++) bytes[i] = units.charCodeAt(i);
  return bytes;
}

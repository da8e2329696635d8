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

/** Reads what toBase64 writes, and nothing else: undefined for any other text. */
export function fromBase64(text) {
  if (text.length % 4 !== 0) return undefined;
  const bytes = read(text);
  // One text for each value: no stray bits, blanks or letters of another alphabet.
  return bytes !== undefined && toBase64(bytes) === text ? bytes : undefined;
}

function read(text) {
  if (Buffer) {
    const buffer = Buffer.from(text, "base64");
    return new Uint8Array(buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength));
  }
  try {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const units = atob(text);
    const bytes = new Uint8Array(units.length);
    for (let i = 0; i < units.length; i++) bytes[i] = units.charCodeAt(i);
    return bytes;
  } catch {
    return undefined;
  }
}

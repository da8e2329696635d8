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
  if (text.length % 4 !== 0 || text.includes("-") || text.includes("_")) return undefined;
  const bytes = read(text);
  // Readers pass over what is no letter, and over stray bits in the last one: one text for each value.
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const tail = bytes?.subarray(Math.floor((bytes.length - 1) / 3) * 3);
  return bytes?.length === (text.length / 4) * 3 - padding && (text === "" || toBase64(tail) === text.slice(-4)) ? bytes : undefined;
}

function read(text) {
  if (Buffer) {
    const { buffer, byteOffset, length } = Buffer.from(text, "base64");
    // Small ones share their memory with others.
    return length === buffer.byteLength ? new Uint8Array(buffer) : new Uint8Array(buffer.slice(byteOffset, byteOffset + length));
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

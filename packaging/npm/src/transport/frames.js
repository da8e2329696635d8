// Frames of RFC 6455, section 5.2, as a client writes and reads them: its own are masked, those of a server are not.

export const maxControlBytes = 125;

/** What a fragment of a message costs beside its own bytes, about. */
const fragmentBytes = 128;

/** One whole frame. mask is four bytes that nobody can guess (section 5.3). */
export function frame(opcode, payload, mask) {
  const { length } = payload;
  const extra = length <= maxControlBytes ? 0 : length < 1 << 16 ? 2 : 8;
  const bytes = new Uint8Array(6 + extra + length);
  const view = new DataView(bytes.buffer);
  bytes[0] = 0x80 | opcode;
  bytes[1] = 0x80 | (extra === 0 ? length : extra === 2 ? 126 : 127);
  if (extra === 2) view.setUint16(2, length);
  if (extra === 8) view.setBigUint64(2, BigInt(length));
  bytes.set(mask, 2 + extra);
  const start = 6 + extra;
  for (let i = 0; i < length; i++) bytes[start + i] = payload[i] ^ mask[i & 3];
  return bytes;
}

/** Throws a fault of the peer, with the code to close with. */
export function fault(code, message) {
  throw Object.assign(new Error(message), { code });
}

/**
 * Puts frames together from the pieces that arrive, Buffers: read(bytes) calls take(opcode, body) for each whole message, with
 * its bytes, and for each control frame. It throws a fault of the peer, and reads nothing after one. maxMessageBytes bounds one
 * message, and what its fragments cost.
 */
export function frameReader({ Buffer }, maxMessageBytes, take) {
  const parts = partsOf(maxMessageBytes, (opcode, bodies) => take(opcode, joined(bodies)));
  const joined = (pieces) => (pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
  let need = parts.next().value;
  let have = 0;
  let pieces = []; // the bytes that there are, put together when they are enough
  return (bytes) => {
    pieces.push(bytes);
    have += bytes.length;
    while (have >= need) {
      const all = joined(pieces);
      pieces = have > need ? [all.subarray(need)] : [];
      have -= need;
      need = parts.next(all.subarray(0, need)).value;
    }
  };
}

// partsOf yields how many bytes it has to get next, and gives whole messages and control frames to take(opcode, bodies).
function* partsOf(maxMessageBytes, take) {
  let fragments = [];
  let size = 0; // of those
  for (;;) {
    const [first, second] = yield 2;
    const opcode = first & 0x0f;
    const final = first >= 0x80;
    if (first & 0x70) fault(1002, "no extension was agreed on");
    if (second & 0x80) fault(1002, "a server does not mask");
    const length = second < 126 ? second : second === 126 ? (yield 2).readUInt16BE() : Number((yield 8).readBigUInt64BE());
    if (length + size > maxMessageBytes) fault(1009, `a message has more than ${maxMessageBytes} bytes`);
    const body = yield length;
    if (opcode >= 8) {
      if (!final || length > maxControlBytes || opcode > 10) fault(1002, "that is no control frame");
      take(opcode, [body]);
      continue;
    }
    if (opcode === 2) fault(1003, "messages are text");
    if (opcode > 1 || (opcode === 0) === (fragments.length === 0)) fault(1002, "fragments are out of order");
    fragments.push(body);
    size += length + fragmentBytes;
    if (!final) continue;
    take(1, fragments);
    fragments = [];
    size = 0;
  }
}

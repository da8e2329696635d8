// Frames of RFC 6455, section 5.2, as a client writes and reads them: its own are masked, those of a server are not.

export const maxControlBytes = 125;

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

// A fault of the peer, with the code to close with.
function fault(code, message) {
  throw Object.assign(new Error(message), { code });
}

/**
 * Puts frames together from the pieces that arrive, Buffers: read(bytes) calls take(opcode, body) for each whole message, with
 * its bytes, and for each control frame. It throws a fault of the peer as an Error with the code to close with.
 * maxMessageBytes bounds one message, of however many frames.
 */
export function frameReader({ Buffer }, maxMessageBytes, take) {
  let pieces = [];
  let have = 0; // bytes in them
  let need = 2; // to go on: of a head or of a whole frame, so that a long one is put together once
  let fragments = [];
  let size = 0; // of those
  let begun = false;

  const joined = (parts) => (parts.length === 1 ? parts[0] : Buffer.concat(parts));

  function sizeOf(bytes) {
    const short = bytes[1] & 0x7f;
    need = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (have < need) return 0;
    if (bytes[1] & 0x80) fault(1002, "a server does not mask");
    const body = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (body + size > maxMessageBytes) fault(1009, `a message has more than ${maxMessageBytes} bytes`);
    need += body;
    return body;
  }

  function whole(first, body) {
    const opcode = first & 0x0f;
    const final = first & 0x80;
    if (first & 0x70) fault(1002, "no extension was agreed on");
    if (opcode >= 8) {
      if (!final || body.length > maxControlBytes || opcode > 10) fault(1002, "that is no control frame");
      return take(opcode, body);
    }
    if (opcode === 2) fault(1003, "messages are text");
    if (opcode > 1 || (opcode === 1) === begun) fault(1002, "fragments are out of order");
    if (body.length > 0) fragments.push(body);
    size += body.length;
    begun = !final;
    if (begun) return;
    const message = joined(fragments);
    fragments = [];
    size = 0;
    take(1, message);
  }

  return (bytes) => {
    pieces.push(bytes);
    have += bytes.length;
    while (have >= need) {
      const all = joined(pieces);
      pieces = [all];
      const body = sizeOf(all);
      if (have < need) return;
      const end = need;
      pieces = have > end ? [all.subarray(end)] : [];
      have -= end;
      need = 2;
      whole(all[0], all.subarray(end - body, end));
    }
  };
}

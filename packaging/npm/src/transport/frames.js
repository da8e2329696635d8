// Frames of RFC 6455, section 5.2, as a client writes and reads them: its own are masked, those of a server are not.

export const maxControlBytes = 125;

/** One whole frame. mask is four bytes that nobody can guess (section 5.3). */
export function frame(opcode, payload, mask) {
  const length = payload.length;
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

/** A fault of the peer, with the code to close with. */
export class FrameFault extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function joined(pieces, length) {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Puts frames together from the pieces that arrive. Text comes as a string, all else as bytes. */
export class FrameReader {
  #most;
  #decode;
  #pieces = [];
  #have = 0;
  #need = 2;
  #fragments = [];
  #begun = false;
  #size = 0;

  /** maxMessageBytes bounds one message, of however many frames. decode gives the text of UTF-8, undefined for what is none. */
  constructor(maxMessageBytes, decode) {
    this.#most = maxMessageBytes;
    this.#decode = decode;
  }

  /** Takes what arrived, and gives each whole message and control frame as {opcode, body}. Throws a FrameFault. */
  *read(bytes) {
    this.#pieces.push(bytes);
    this.#have += bytes.length;
    while (this.#have >= this.#need) {
      const head = this.#peek();
      const size = this.#sizeOf(head);
      if (size === undefined) continue; // #need has grown to the whole head
      if (this.#have < size.head + size.body) {
        this.#need = size.head + size.body;
        return;
      }
      const whole = this.#join();
      const body = whole.subarray(size.head, size.head + size.body);
      this.#pieces = whole.length === size.head + size.body ? [] : [whole.subarray(size.head + size.body)];
      this.#have = whole.length - size.head - size.body;
      this.#need = 2;
      const message = this.#take(whole[0], body);
      if (message !== undefined) yield message;
    }
  }

  #join() {
    if (this.#pieces.length > 1) this.#pieces = [joined(this.#pieces, this.#have)];
    return this.#pieces[0];
  }

  // #peek gives the first bytes, without putting a long message together each time that some of it arrives.
  #peek() {
    return this.#pieces[0].length >= Math.min(this.#have, 10) ? this.#pieces[0] : this.#join();
  }

  #sizeOf(bytes) {
    const short = bytes[1] & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (this.#have < head) {
      this.#need = head;
      return undefined;
    }
    if (bytes[1] & 0x80) throw new FrameFault(1002, "a server does not mask");
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const body = short < 126 ? short : short === 126 ? view.getUint16(2) : Number(view.getBigUint64(2));
    if (body + this.#size > this.#most) throw new FrameFault(1009, `a message has more than ${this.#most} bytes`);
    return { head, body };
  }

  #take(first, body) {
    const opcode = first & 0x0f;
    const final = (first & 0x80) !== 0;
    if (first & 0x70) throw new FrameFault(1002, "no extension was agreed on");
    if (opcode >= 8) {
      if (!final || body.length > maxControlBytes || opcode > 10) throw new FrameFault(1002, "that is no control frame");
      return { opcode, body };
    }
    if (opcode === 2) throw new FrameFault(1003, "messages are text");
    if (opcode > 1 || (opcode === 1) === this.#begun) throw new FrameFault(1002, "fragments are out of order");
    if (body.length > 0) this.#fragments.push(body);
    this.#size += body.length;
    this.#begun = !final;
    if (!final) return undefined;
    const text = this.#text();
    this.#fragments = [];
    this.#size = 0;
    return { opcode: 1, body: text };
  }

  #text() {
    const text = this.#decode(this.#fragments.length === 1 ? this.#fragments[0] : joined(this.#fragments, this.#size));
    if (text === undefined) throw new FrameFault(1007, "a text message is not UTF-8");
    return text;
  }
}

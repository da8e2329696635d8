// The decoders (Encoding Standard, https://encoding.spec.whatwg.org/). Each is a function of (bytes, more) → text, with
// state of its own while more is true; it throws a TypeError where fatal is true and the bytes are wrong. None of them
// knows of byte order marks.

const joined = (Bytes, typedArraySet, pending, bytes) => {
  if (pending.length === 0) return bytes;
  const all = new Bytes(pending.length + bytes.length);
  typedArraySet(all, pending);
  typedArraySet(all, bytes, pending.length);
  return all;
};

export function makeDecoders(core) {
  const { Bytes, native, need, SafeTypeError, stringCharCodeAt: at, stringSlice, stringToWellFormed, typedArrayBuffer, typedArrayByteOffset, typedArraySet } = core;
  const subarray = (bytes, start, end = bytes.length) => new Bytes(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + start, end - start);
  const malformed = () => new SafeTypeError("The encoded data was not valid.");
  const none = new Bytes(0);

  // How many bytes at the end begin a character that is not complete (8.1.1).
  function incompleteTail(bytes) {
    const { length } = bytes;
    for (let back = 1; back <= 3 && back <= length; back++) {
      const byte = bytes[length - back];
      if (byte < 0x80) return 0;
      if (byte < 0xc0) continue; // a byte inside a character
      const needed = byte < 0xc2 ? 0 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf5 ? 4 : 0;
      if (needed <= back) return 0;
      if (back > 1) {
        const next = bytes[length - back + 1];
        const low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80;
        const high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf;
        if (next < low || next > high) return 0;
      }
      return back;
    }
    return 0;
  }

  function utf8(fatal) {
    let pending = none;
    return (bytes, more) => {
      const all = joined(Bytes, typedArraySet, pending, bytes);
      pending = none;
      const end = all.length - (more ? incompleteTail(all) : 0);
      const text = native.utf8Decode(end === all.length ? all : subarray(all, 0, end), fatal);
      if (text === undefined) throw malformed();
      if (end < all.length) pending = copy(all, end); // bytes of the guest's may change
      return text;
    };
  }

  function copy(bytes, start) {
    const own = new Bytes(bytes.length - start);
    typedArraySet(own, subarray(bytes, start));
    return own;
  }

  const isLead = (unit) => unit >= 0xd800 && unit < 0xdc00;

  // 14.2
  function utf16(fatal, bigEndian) {
    let pending = none;
    return (bytes, more) => {
      const all = joined(Bytes, typedArraySet, pending, bytes);
      pending = none;
      let units = all;
      if (bigEndian) {
        units = new Bytes(all.length);
        for (let i = 0; i + 1 < all.length; i += 2) {
          units[i] = all[i + 1];
          units[i + 1] = all[i];
        }
      }
      let text = native.utf16(units);
      let odd = all.length & 1;
      if (text.length > 0 && isLead(at(text, text.length - 1))) {
        if (more) {
          odd += 2;
          text = stringSlice(text, 0, -1);
        } else {
          odd = 0; // one error for both
        }
      }
      if (more && odd > 0) pending = copy(all, all.length - odd);
      if (!more && odd > 0) text += "\ud800";
      const formed = stringToWellFormed(text);
      if (fatal && formed !== text) throw malformed();
      return formed;
    };
  }

  // Encodings of old are a part of their own: its tables are large.
  function legacy(name, fatal) {
    const decode = need("legacy").makeDecoder(name, fatal);
    return (bytes, more) => {
      try {
        return decode(typedArrayBuffer(new Bytes(bytes)), more); // a copy, since decoders cannot read shared memory
      } catch {
        throw malformed();
      }
    };
  }

  return (name, fatal) => {
    if (name === "utf-8") return utf8(fatal);
    if (name === "utf-16le" || name === "utf-16be") return utf16(fatal, name === "utf-16be");
    return legacy(name, fatal);
  };
}

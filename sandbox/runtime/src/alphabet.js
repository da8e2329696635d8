// The alphabets of base64 (RFC 4648, 4 and 5).

const common = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/**
 * Returns the codes of the 64 characters, and the values of the characters below 128: 64 for white space, 255 for what is
 * not of the alphabet. ends is the last two characters.
 */
export function makeAlphabet({ Bytes, stringCharCodeAt, typedArrayFill }, ends) {
  const text = common + ends;
  const codes = new Bytes(64);
  const values = typedArrayFill(new Bytes(128), 255);
  for (let i = 0; i < 64; i++) {
    codes[i] = stringCharCodeAt(text, i);
    values[codes[i]] = i;
  }
  values[9] = values[10] = values[12] = values[13] = values[32] = 64;
  return { __proto__: null, codes, values };
}

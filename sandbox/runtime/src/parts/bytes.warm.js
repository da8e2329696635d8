(() => {
  const bytes = new Uint8Array([1, 255, 3, 4]);
  Uint8Array.fromHex(bytes.toHex());
  Uint8Array.fromBase64(bytes.toBase64());
})();

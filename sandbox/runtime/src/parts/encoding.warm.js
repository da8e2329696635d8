// Uses the codecs as programs do.

(() => {
  const bytes = new TextEncoder().encode("warm é");
  new TextDecoder().decode(bytes);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  decoder.decode(bytes, { stream: true });
  decoder.decode();
  new TextDecoder("utf-16le").decode(bytes.buffer);
  new TextEncoder().encodeInto("x", bytes);
})();

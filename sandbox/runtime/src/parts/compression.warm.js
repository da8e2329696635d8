// Compresses and decompresses as programs do.

(async () => {
  const packed = new ReadableStream({ start(c) { c.enqueue(new Uint8Array(10)); c.close(); } }).pipeThrough(new CompressionStream("gzip"));
  for await (const chunk of packed.pipeThrough(new DecompressionStream("gzip"))) void chunk;
})();

// Uses streams as programs do.

(async () => {
  const chunks = new ReadableStream({ start(c) { c.enqueue("a"); c.close(); } });
  const doubled = chunks.pipeThrough(new TransformStream({ transform(chunk, c) { c.enqueue(chunk + chunk); } }));
  for await (const chunk of doubled) void chunk;
  const bytes = new ReadableStream({ type: "bytes", start(c) { c.enqueue(new Uint8Array(4)); c.close(); } });
  const [first, second] = bytes.tee();
  await first.getReader({ mode: "byob" }).read(new Uint8Array(4));
  await second.getReader().read();
  const writer = new WritableStream({ write() {} }, new CountQueuingStrategy({ highWaterMark: 2 })).getWriter();
  await writer.write(1);
  await writer.close();
  for await (const chunk of ReadableStream.from([1])) void chunk;
})();

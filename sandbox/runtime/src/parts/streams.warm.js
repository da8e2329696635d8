// Uses streams as most programs do. What is rarer is compiled when it is used: the whole code of this part would double
// the time of its first touch.

(async () => {
  for await (const chunk of new ReadableStream({ start(c) { c.enqueue("a"); c.close(); } })) void chunk;
})();

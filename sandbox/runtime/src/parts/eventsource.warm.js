// Makes an event source as programs do; there is nobody to reach.

try {
  const source = new EventSource("https://example.com/");
  source.onmessage = () => source.close();
} catch {}

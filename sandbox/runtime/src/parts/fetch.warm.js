// Fetches as programs do; there is nobody to reach.

(async () => {
  await (await fetch("data:text/plain;base64,aGk=")).arrayBuffer();
  await fetch("https://example.com/").catch(() => {});
})();

(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {};
  port2.postMessage({ a: 1 });
  port1.close();
})();

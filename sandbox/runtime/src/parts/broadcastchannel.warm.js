(() => {
  const channel = new BroadcastChannel("a");
  const other = new BroadcastChannel("a");
  other.onmessage = () => {};
  channel.postMessage({ a: 1 });
  channel.close();
})();

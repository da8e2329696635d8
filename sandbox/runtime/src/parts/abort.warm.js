(() => {
  const controller = new AbortController();
  const either = AbortSignal.any([controller.signal]);
  either.addEventListener("abort", () => {}, { once: true });
  controller.signal.onabort = () => {};
  controller.abort();
  controller.signal.throwIfAborted.length;
})();

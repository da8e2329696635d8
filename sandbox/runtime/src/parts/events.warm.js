(() => {
  const controller = new AbortController();
  const either = AbortSignal.any([controller.signal]);
  either.addEventListener("abort", () => {}, { once: true });
  controller.signal.onabort = () => {};
  controller.abort();
  controller.signal.throwIfAborted.length;
  const target = new EventTarget();
  const listener = () => {};
  target.addEventListener("warm", listener);
  target.dispatchEvent(new Event("warm"));
  target.dispatchEvent(new CustomEvent("warm", { detail: 1 }));
  target.removeEventListener("warm", listener);
  `${new DOMException("warm", "AbortError")}`;
})();

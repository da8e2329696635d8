// Also what other parts need of this one: handlers as attributes.

(() => {
  const target = new EventTarget();
  const listener = () => {};
  target.addEventListener("warm", listener, { once: true });
  target.dispatchEvent(new Event("warm"));
  target.dispatchEvent(new CustomEvent("warm", { detail: 1 }));
  target.removeEventListener("warm", listener);
  const { signal } = new AbortController();
  signal.onabort = listener;
  signal.onabort;
})();

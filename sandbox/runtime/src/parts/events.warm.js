(() => {
  const target = new EventTarget();
  const listener = () => {};
  target.addEventListener("warm", listener, { once: true });
  target.dispatchEvent(new Event("warm"));
  target.dispatchEvent(new CustomEvent("warm", { detail: 1 }));
  target.removeEventListener("warm", listener);
})();

(() => {
  const bytes = new Uint8Array(2);
  structuredClone({ a: [1, new Map([[1, new Set([2])]]), new Date(0)], bytes }, { transfer: [bytes.buffer] });
  structuredClone([new DOMException("warm")]);
})();

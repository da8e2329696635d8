(() => {
  performance.now();
  performance.mark("a");
  performance.measure("b", "a");
  performance.getEntries();
})();

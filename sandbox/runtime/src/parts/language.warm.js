(() => {
  Iterator.concat([1], [2]).toArray();
  Math.sumPrecise([0.1, 1]);
  new Map().getOrInsertComputed("a", () => 1);
})();

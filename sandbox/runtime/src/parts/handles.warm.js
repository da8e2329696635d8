// The codec wakes this part where a value may keep its program, which one that only warms does not.
(() => {})();

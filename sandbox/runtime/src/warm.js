// Runs once after the library while the startup snapshot is built, so that the code of typical calls is in it already
// compiled. The host is not asked for anything yet (see index.js). It leaves no trace: what it starts it stops.

(() => {
  console.log("%s is %d", "warm", 1);
  console.log({ a: 1, b: "two", c: [1, 2, 3], d: { e: null } }, [1, "x", undefined], true);
  console.log(new Map([["k", new Set([1])]]), new Uint8Array(2), new Date(0), /x/g, () => 1, class {});
  console.error(new TypeError("warm", { cause: "none" }));
  console.info([[[[[[[1]]]]]]], "x".repeat(100), { "odd key": Symbol("s"), get g() { return 1; } });
  console.warn(1n, -0, NaN);
  console.debug("d");
  clearTimeout(setTimeout(() => {}, 1, 2));
  clearInterval(setInterval(() => {}, 1));
})();

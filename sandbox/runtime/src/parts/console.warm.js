console.log("%s is %d", "warm", 1);
console.log({ a: 1, b: "two", c: [1, 2, 3], d: { e: null } }, [1, "x", undefined], true);
console.log(new Map([["k", new Set([1])]]), new Uint8Array(2), new Date(0), /x/g, () => 1, class {});
console.error(new TypeError("warm", { cause: "none" }));
console.info([[[[[[[1]]]]]]], "x".repeat(100), { "odd key": Symbol("s"), get g() { return 1; } });
console.warn(1n, -0, NaN);
console.table([{ a: 1 }, { a: 2 }]);
console.group("g");
console.groupEnd();

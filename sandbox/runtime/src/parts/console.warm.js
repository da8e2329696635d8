// Shows values as most programs do. What is rarer is compiled when it is used: the whole code of this part would add a
// fifth to its first touch.

console.log({ a: 1, b: "two", c: [1, 2, 3], d: { e: null } }, [1, "x", undefined], true);
console.log([[[[[[[1]]]]]]], { "odd key": "x".repeat(100) });
console.error(new TypeError("warm"));

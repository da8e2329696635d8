// What the analyzer needs for TypeScript beside acorn. It is a text by itself, which is given to the analyzer when a program
// first needs it: the start of a worker does not pay for it.

export { tsPlugin as default } from "@sveltejs/acorn-typescript";

// What a CommonJS module exports by name, as far as its text tells without running it.

import { parse } from "../node_modules/cjs-module-lexer/lexer.js"; // its entry for imports needs WebAssembly

/** Returns { exports: [name], reexports: [specifier] }; nothing for a text that cannot be read. */
export function exportsOf(code) {
  try {
    const { exports, reexports } = parse(code);
    return { exports: [...exports], reexports: [...reexports] };
  } catch {
    return { exports: [], reexports: [] }; // the engine will say what is wrong
  }
}

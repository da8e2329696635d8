// Readers over acorn. They only find out where the parts of a text are: rules that do not change this, as duplicate
// declarations or the inside of regular expressions, are left to the engine, which compiles the result anyway.

import { Parser, tokTypes } from "acorn";

// Everything ends up inside an ES module: strict mode, top-level await, no HTML-like comments.
const base = { ecmaVersion: "latest", sourceType: "module", preserveParens: true };

/** What is thrown for a text that is one expression, but not a function. */
export class NotAFunction extends Error {
  constructor(at) {
    super("the text is an expression that is not a function");
    this.pos = at;
  }
}

/** Returns the readers of a language: { ModuleReader, ScriptReader, FunctionReader }, classes over an acorn parser. */
export function makeReaders(Language, options) {
  const settings = { ...base, ...options };

  class Reader extends Language {
    imports = []; // import declarations read so far; they outlive a syntax error

    parseImport(node) {
      const declaration = super.parseImport(node);
      if (declaration.type === "ImportDeclaration") this.imports.push(declaration);
      return declaration;
    }

    declareName() {}
    checkLocalExport() {}
    validateRegExpFlags() {}
    validateRegExpPattern() {}
  }

  /** Reads an ES module. */
  class ModuleReader extends Reader {
    constructor(code) {
      super(settings, code);
    }
  }

  /** Reads the statements of a script: as in the body of an async function, with import declarations between them. */
  class ScriptReader extends Reader {
    metExport = false;
    #namespaces = 0; // around what is read

    constructor(code) {
      super({ ...settings, allowReturnOutsideFunction: true }, code);
    }

    parseExport(node, exports) {
      if (this.#namespaces > 0) return super.parseExport(node, exports);
      this.metExport = true;
      return this.unexpected();
    }

    // TypeScript: a namespace has exports of its own.
    tsParseModuleBlock() {
      this.#namespaces++;
      try {
        return super.tsParseModuleBlock();
      } finally {
        this.#namespaces--;
      }
    }
  }

  /** Reads import declarations, one expression, and semicolons. The node has `expression`. */
  class FunctionReader extends Reader {
    entryStart = 0; // where the expression begins, once the imports are read
    metFunction = false; // the expression began as a function

    constructor(code) {
      super(settings, code);
    }

    parseTopLevel(node) {
      while (this.type === tokTypes._import) this.#readImport();
      this.entryStart = this.start;
      node.expression = this.parseExpression();
      while (this.eat(tokTypes.semi));
      if (this.type !== tokTypes.eof) this.unexpected();
      return node;
    }

    parseFunction(node, ...rest) {
      this.#note(node);
      return super.parseFunction(node, ...rest);
    }

    parseArrowExpression(node, ...rest) {
      this.#note(node);
      return super.parseArrowExpression(node, ...rest);
    }

    #readImport() {
      const node = this.parseStatement(null, true, {});
      if (node.type !== "ImportDeclaration") throw new NotAFunction(node.start); // import(…) or import.meta
    }

    #note(node) {
      if (node.start === this.entryStart) this.metFunction = true;
    }
  }

  return { ModuleReader, ScriptReader, FunctionReader };
}

export const javascript = makeReaders(Parser, {});

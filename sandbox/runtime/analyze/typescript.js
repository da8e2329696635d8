// Reading TypeScript: the same readers over acorn with its TypeScript plugin. The types stay in the text; sandbox erases
// them once the text is a module.

import { Parser } from "acorn";
import { makeReaders } from "./parser.js";

let readers;

// Indirect: in the global scope. No guest's code ever comes here.
const evaluate = eval;

/** Takes what plugin.js is bundled to. */
export function learnTypeScript(plugin) {
  readers = makeReaders(Parser.extend(evaluate(plugin)()), { locations: true });
}

/** The readers; undefined before learnTypeScript: most programs are JavaScript. */
export const typescript = () => readers;

const erased = new Set(["TSTypeAliasDeclaration", "TSInterfaceDeclaration", "TSDeclareFunction"]);

/** True for a declaration of which nothing is left when types are erased. */
export const isErased = (node) => erased.has(node.type) || node.declare === true;

/** True for an import declaration of which nothing is left. */
export const isTypeImport = (node) => node.importKind === "type";

const deepest = 4000; // levels: what erases the types walks trees by recursion, on a stack whose end is the process's

// Calls visit(node, depth) for each node of a tree, without recursion.
function walk(root, visit) {
  const work = [root];
  const depths = [0];
  while (work.length > 0) {
    const node = work.pop();
    const depth = depths.pop();
    if (node.type) visit(node, depth);
    for (const key in node) {
      const value = node[key];
      if (value === null || typeof value !== "object" || key === "loc") continue;
      work.push(value);
      depths.push(depth + (node.type ? 1 : 0));
    }
  }
}

/** Throws a RangeError with `pos` for a tree that is nested too deeply. */
export function checkDepth(root) {
  walk(root, (node, depth) => {
    if (depth > deepest) throw Object.assign(new RangeError("the text is nested too deeply"), { pos: node.start });
  });
}

/** True for a tree, if there is one, in which something is TypeScript's own. */
export function hasTypes(root) {
  let found = false;
  if (root) {
    walk(root, (node) => {
      found ||= node.type.startsWith("TS") || node.accessibility !== undefined || node.importKind === "type" || node.exportKind === "type";
    });
  }
  return found;
}

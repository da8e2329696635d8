// Import declarations of a script are lifted out of the function that its statements become: written again, on one line,
// in front of it. Each piece says from where in the submitted text it is, so that the engine's words about it can be placed.

import { isTypeImport } from "./typescript.js";

// U+2028 and U+2029 count as line ends, JSON.stringify leaves them as they are.
const stringText = (value) =>
  JSON.stringify(value).replace(/[\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);

const nameText = (node) => (node.type === "Literal" ? stringText(node.value) : node.name);

/** Returns the edits that lift the declarations: insertions at the front, and an empty statement where each stood. */
export function lift(declarations) {
  return [
    ...declarations.filter((node) => !isTypeOnly(node)).flatMap((node) => rewrite(node).map(([text, from]) => ({ at: 0, text, from }))),
    ...declarations.map((node) => ({ at: node.start, end: node.end, fill: ";" })),
  ];
}

// Types are no values: TypeScript drops an import that has no other names.
const isTypeOnly = (node) =>
  isTypeImport(node) || (node.specifiers.length > 0 && node.specifiers.every((specifier) => isTypeImport(specifier)));

// [text, offset] pairs that together are the declaration.
function rewrite(node) {
  const source = [stringText(node.source.value), node.source.start];
  const tail = [...attributes(node), [";", node.start]];
  if (node.specifiers.length === 0) return [["import ", node.start], source, ...tail];
  return [["import ", node.start], ...bindings(node.specifiers), [" from ", node.start], source, ...tail];
}

function bindings(specifiers) {
  const pieces = [];
  const named = specifiers.filter((s) => s.type === "ImportSpecifier" && !isTypeImport(s));
  for (const s of specifiers) {
    if (s.type === "ImportDefaultSpecifier") pieces.push([s.local.name, s.start]);
    if (s.type === "ImportNamespaceSpecifier") pieces.push([`* as ${s.local.name}`, s.start]);
  }
  if (named.length > 0) {
    const inner = named.flatMap((s) => [[`${nameText(s.imported)} as ${s.local.name}`, s.start], [",", s.end]]);
    pieces.push(["{", named[0].start], ...inner, ["}", named.at(-1).end]);
  }
  return pieces.flatMap((piece, i) => (i > 0 && isSeparate(pieces, i) ? [[",", piece[1]], piece] : [piece]));
}

// A comma stands between the default binding and what follows it, nowhere inside the braces.
const isSeparate = (pieces, i) => i === 1 && pieces[0][0] !== "{";

function attributes(node) {
  if (!node.attributes?.length) return [];
  const inner = node.attributes.flatMap((a) => [[`${nameText(a.key)}:${stringText(a.value.value)},`, a.start]]);
  return [[" with {", node.attributes[0].start], ...inner, ["}", node.attributes.at(-1).end]];
}

/** The specifiers that a module asks for statically, with the offset of each. */
export function requests(declarations) {
  const named = declarations.filter((node) => node.source && !isTypeImport(node) && node.exportKind !== "type");
  return named.map((node) => ({ specifier: node.source.value, at: node.source.start }));
}

// How the parts of a value are put on lines: on one when it is short, else one part a line, short items of arrays side by side.

import { join, list, push, stringIncludes, stringIndexOf, stringSlice } from "../../primordials.js";

const lineWidth = 76;
const shortItem = 16; // items up to this length are put side by side
const fewItems = 6;

/** Indents every line of text but the first. */
export function indentRest(text, pad) {
  let out = "";
  let from = 0;
  for (;;) {
    const at = stringIndexOf(text, "\n", from);
    if (at < 0) return out + stringSlice(text, from);
    out += stringSlice(text, from, at + 1) + pad;
    from = at + 1;
  }
}

/** Lays parts out between open and close. indent is the column at which the value's own lines start. */
export function layout(head, open, parts, close, indent, isList) {
  if (parts.length === 0) return `${head}${open}${close}`;
  if (isList && parts.length > fewItems && allShort(parts)) parts = sideBySide(parts, lineWidth - indent - 2);
  if (fitsOneLine(head, parts, indent)) return `${head}${open} ${join(parts, ", ")} ${close}`;
  let out = `${head}${open}\n`;
  for (let i = 0; i < parts.length; i++) {
    out += `  ${indentRest(parts[i], "  ")}${i < parts.length - 1 ? "," : ""}\n`;
  }
  return out + close;
}

function fitsOneLine(head, parts, indent) {
  let width = indent + head.length + 4;
  for (let i = 0; i < parts.length; i++) {
    width += parts[i].length + 2;
    if (width > lineWidth || stringIncludes(parts[i], "\n")) return false;
  }
  return true;
}

function allShort(parts) {
  for (let i = 0; i < parts.length - 1; i++) {
    if (parts[i].length > shortItem || stringIncludes(parts[i], "\n")) return false;
  }
  return true; // the last may be the note on what was left out
}

function sideBySide(parts, width) {
  const lines = list();
  let line = parts[0];
  for (let i = 1; i < parts.length; i++) {
    if (line.length + 2 + parts[i].length <= width) {
      line += `, ${parts[i]}`;
    } else {
      push(lines, line);
      line = parts[i];
    }
  }
  push(lines, line);
  return lines;
}

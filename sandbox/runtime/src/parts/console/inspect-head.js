// What stands in brackets for an object that is too deep to be opened.

import { stringEndsWith, stringSlice, stringStartsWith } from "../../primordials.js";

/** Turns the text before the braces into the inside of brackets: "Foo " to "Foo". */
export function trimHead(head, fallback) {
  if (head === "") return fallback;
  if (stringStartsWith(head, "[")) return fallback;
  return stringEndsWith(head, " ") ? stringSlice(head, 0, -1) : head;
}

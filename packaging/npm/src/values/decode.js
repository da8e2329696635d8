// From the text of the protocol's value codec to JavaScript values. What is not exactly a value of the codec is refused.

import { Handle, ValueError } from "./classes.js";
import { parse } from "./json.js";
import { isArray, isText, tags } from "./tags.js";
import { areTag, keysOf, members, walk } from "./walk.js";

const maxArrayLength = 2 ** 32 - 1;

/** The value of a text. Throws a SyntaxError where it is not JSON and a ValueError where it is not a value. */
export function decode(text) {
  return decodeTree(parse(text));
}

/** decode after JSON.parse. The tree is not changed. handle(id, kind) makes the objects of handles. */
export function decodeTree(root, handle = (id, kind) => new Handle(id, kind)) {
  const made = new Map(); // by object of the tree
  const [at, fail, enter, leave] = walk(visit);
  return at(root);

  function visit(tree) {
    if (tree === Infinity || tree === -Infinity) fail("a number is out of range");
    if (typeof tree !== "object" || tree === null) return tree;
    if (isArray(tree)) return array(tree);
    const keys = keysOf(tree);
    return areTag(keys) ? tagged(tree, keys[0]) : members(note(tree, {}), tree, at, keys);
  }

  // Notes what stands for a place of the tree, for references to it.
  function note(tree, object) {
    made.set(tree, object);
    return object;
  }

  function array(tree) {
    const list = note(tree, []);
    let length = 0;
    for (let i = 0; i < tree.length; i++) {
      const holes = holesOf(tree[i]);
      if (holes > 0) length += holes;
      else list[length++] = at(tree[i], i);
    }
    if (length > maxArrayLength) fail("it is longer than an array can be");
    list.length = length;
    return list;
  }

  function tagged(tree, tag) {
    const body = tree[tag];
    if (tag === "@ref") return resolve(body);
    const [read, fill] = tags[tag] ?? fail(`unknown tag ${tag.slice(0, 80)}`);
    enter(tag);
    try {
      const value = read(body, at, handle);
      if (value === false) fail("it is of another form");
      if (typeof value === "object") note(tree, value);
      fill?.(value, body, at);
      leave();
      return value;
    } catch (error) {
      throw error instanceof ValueError ? error : fail(error.message);
    }
  }

  // Only places of objects that came before are noted, wherever else a pointer leads.
  function resolve(pointer) {
    const [first, ...steps] = isText(pointer) ? pointer.split("/") : [];
    const end = steps.reduce((place, step) => place?.[step.replaceAll("~1", "/").replaceAll("~0", "~")], first === "" ? root : undefined);
    return made.get(end) ?? fail("@ref leads to no object that came before");
  }
}

const holesOf = (item) => (Number.isInteger(item?.["@hole"]) && keysOf(item).length === 1 ? item["@hole"] : 0);

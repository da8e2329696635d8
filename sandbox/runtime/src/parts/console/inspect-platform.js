// Platform objects on the console, by what they hold: at most 100 items each. Which object is one, and what is in it, is
// asked of the part that made it and never of its members, which the guest may have replaced. A part that is not loaded
// has made none.

import { list, push, typedArrayByteLength } from "../../primordials.js";
import { noteLeftOut } from "./inspect-lists.js";
import { trimHead } from "./inspect-head.js";
import { keyText } from "./quote.js";

const maxItems = 100;
const maxKey = 1000; // UTF-16 units

/** The text of a platform object whose contents are known; undefined for any other object. */
export function showPlatform(inspector, value, at) {
  for (const part in known) {
    const exports = inspector.settings.loaded(part);
    const found = exports === undefined ? undefined : known[part](exports, value);
    if (found !== undefined) return showContents(inspector, value, at, found);
  }
  return undefined;
}

// For each part: (what it exports, an object) → the object's name and its items, undefined for an object not its own.
// Items are [label, value] in a list.
const known = {
  __proto__: null,
  url({ hrefOf, pairsOf }, value) {
    const href = hrefOf(value);
    if (href !== undefined) return fields("URL", ["href", href]);
    const pairs = pairsOf(value);
    return pairs === undefined ? undefined : { __proto__: null, name: "URLSearchParams", pairs, arrow: true };
  },
  blob({ isBlob, isFile, bytesOfBlob, typeOfBlob, nameOfFile }, value) {
    if (!isBlob(value)) return undefined;
    const size = ["size", typedArrayByteLength(bytesOfBlob(value))];
    const type = ["type", typeOfBlob(value)];
    return isFile(value) ? fields("File", ["name", nameOfFile(value)], size, type) : fields("Blob", size, type);
  },
  formdata({ isFormData, entriesOf }, value) {
    return isFormData(value) ? { __proto__: null, name: "FormData", pairs: entriesOf(value), arrow: false } : undefined;
  },
  http({ isHeaders, headerSlots, sortedPairs, isRequest, requestOf, isResponse, responseOf }, value) {
    if (isHeaders(value)) return { __proto__: null, name: "Headers", pairs: sortedPairs(headerSlots(value)), arrow: false };
    if (isRequest(value)) {
      const { method, url, headersObject } = requestOf(value);
      return fields("Request", ["method", method], ["url", url], ["headers", headersObject]);
    }
    if (!isResponse(value)) return undefined;
    const { status, statusText, headersObject, url } = responseOf(value);
    return fields("Response", ["status", status], ["statusText", statusText], ["headers", headersObject], ["url", url]);
  },
};

function fields(name, ...pairs) {
  return { __proto__: null, name, pairs, arrow: false };
}

function showContents(inspector, value, at, { name, pairs, arrow }) {
  const head = inspector.head(value, name);
  if (inspector.isTooDeep(at)) return `[${trimHead(head, name)}]`;
  const parts = list();
  let i = 0;
  for (; i < pairs.length && i < maxItems && inspector.left > 0; i++) {
    const label = arrow ? `${inspector.string(pairs[i][0])} => ` : `${labelOf(inspector, pairs[i][0])}: `;
    inspector.left -= label.length;
    push(parts, label + inspector.show(pairs[i][1], at.level + 1, at.indent + 2));
  }
  noteLeftOut(parts, pairs.length - i);
  inspector.properties(parts, value, at, false);
  return inspector.wrap(head, "{", parts, "}", at);
}

// A name as a key; a long one as strings are shown, which cuts it.
const labelOf = (inspector, name) => (name.length > maxKey ? inspector.string(name) : keyText(name));

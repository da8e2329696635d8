// Names of the codemode dialect: which a provider and a connector may have, and what a tool is called in the sandbox.

import { reserved, words } from "./syntax.js";

/** Reserved words of ECMAScript, and those of older editions. */
const reservedWords = new Set([...reserved, ...words(
  "abstract arguments boolean byte char double eval false final float goto import int long native null short super synchronized this throws transient true undefined volatile")]);

const reservedNames = words(
  "__dispatchers __connectors __logs __CODEMODE_BINARY_TAG __bytesToBase64 __base64ToBytes __encodeCodemodeValue __decodeCodemodeValue " +
  "__stringifyForCodemode __parseForCodemode WorkerEntrypoint CodeExecutor Promise setTimeout Error console");

/** The identifier that a tool has in the sandbox. */
export function sanitizeToolName(name) {
  const kept = name.replace(/[-.\s]/g, "_").replace(/[^\w$]/g, "");
  if (kept === "") return "_";
  if (/^\d/.test(kept)) return `_${kept}`;
  return reservedWords.has(kept) ? `${kept}_` : kept;
}

/** The functions of a provider by their names in the sandbox, in a Map; a text says why there is none. */
export function toolsOf({ name, fns }) {
  const tools = new Map();
  const raw = new Map();
  for (const [key, fn] of Object.entries(fns)) {
    const known = sanitizeToolName(key);
    // An empty name that came before does not count, in the reference either.
    if (raw.get(known)) return `Tool names "${raw.get(known)}" and "${key}" both sanitize to "${known}" in provider "${name}"`;
    raw.set(known, key);
    tools.set(known, fn);
  }
  return tools;
}

/** Why these providers and connectors cannot be, undefined when they can. */
export function faultOf(providers, connectors) {
  const seen = new Set();
  for (const [what, list] of Object.entries({ Provider: providers, Connector: connectors })) {
    for (const { name } of list) {
      if (reservedNames.has(name)) return `${what} name "${name}" is reserved`;
      if (!/^[A-Za-z_$][\w$]*$/.test(name)) return `${what} name "${name}" is not a valid JavaScript identifier`;
      if (seen.has(name)) return what === "Provider" ? `Duplicate provider name "${name}"` : `Duplicate name "${name}" (connector clashes with provider)`;
      seen.add(name);
    }
  }
  return undefined;
}

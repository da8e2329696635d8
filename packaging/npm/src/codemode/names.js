// Names of the codemode dialect: which a provider and a connector may have, and what a tool is called in the sandbox.

import { entriesOf } from "../values/walk.js";
import { reserved } from "./syntax.js";

/** Words that were or may become reserved, or that one cannot name anything by. */
const alsoReserved = /^(abstract|arguments|boolean|byte|char|double|eval|false|final|float|goto|import|int|long|native|null|short|super|synchronized|this|throws|transient|true|undefined|volatile)$/;

/** What the reference uses in its own harness. */
const taken = /^(__(dispatchers|connectors|logs|CODEMODE_BINARY_TAG|bytesToBase64|base64ToBytes|(en|de)codeCodemodeValue|(stringify|parse)ForCodemode)|WorkerEntrypoint|CodeExecutor|Promise|setTimeout|Error|console)$/;

/** The identifier that a tool has in the sandbox. */
export function sanitizeToolName(name) {
  const kept = name.replace(/[-.\s]/g, "_").replace(/[^\w$]/g, "");
  if (kept === "") return "_";
  if (/^\d/.test(kept)) return `_${kept}`;
  return reserved.test(kept) || alsoReserved.test(kept) ? `${kept}_` : kept;
}

/**
 * The tools of providers by "NAMESPACE.NAME" in the sandbox: pairs of the name on the host and the function. Where these
 * providers and connectors cannot be, the text that says why is thrown.
 */
export function toolsOf(providers, connectors) {
  const seen = new Set();
  for (const [what, list] of entriesOf({ Provider: providers, Connector: connectors })) {
    for (const { name } of list) {
      const fault = taken.test(name) ? "reserved" : !/^(?!\d)[\w$]+$/.test(name) && "not a valid JavaScript identifier";
      if (fault) throw `${what} name "${name}" is ${fault}`;
      if (seen.has(name)) throw what === "Provider" ? `Duplicate provider name "${name}"` : `Duplicate name "${name}" (connector clashes with provider)`;
      seen.add(name);
    }
  }
  const tools = new Map();
  for (const { name, fns } of providers) {
    for (const tool of entriesOf(fns)) {
      const known = sanitizeToolName(tool[0]);
      const place = `${name}.${known}`;
      const before = tools.get(place)?.[0];
      // An empty name that came before does not count, in the reference either.
      if (before) throw `Tool names "${before}" and "${tool[0]}" both sanitize to "${known}" in provider "${name}"`;
      tools.set(place, tool);
    }
  }
  return tools;
}

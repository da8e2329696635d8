// The module that runs in the sandbox: the harness of harness/program.js in the repository around the code of a model.

import { stringify } from "../values/json.js";
import { harness } from "./harness-text.js";

/**
 * The module that runs code, what readCode gives, with namespaces as constants around it. mark is a name that nobody can
 * guess, and the harness gives [namespace, compile, run]. The constants are in a scope of their own: a namespace may have
 * the name of whatever the harness uses.
 */
export function moduleOf({ code: [text, statements], providers, connectors, mark }) {
  const run = `$${mark}`;
  const names = [...providers, ...connectors].map(({ name }) => name);
  const constants = names.map((name, i) => `const ${name} = ${run}[0]("${name}", ${i < providers.length});`);
  const preludes = providers.map(({ prelude }) => prelude);
  return `const ${run} = (${harness})("${mark}");
export default () => ${run}[2](async () => {
${[...constants, ...preludes].join("\n")}
return (
${statements === undefined ? text : `() => ${run}[1](${stringify(statements)}, "${names}")(${names})`}
);
});
`;
}

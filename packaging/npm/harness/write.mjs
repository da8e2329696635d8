// The text of the harness, minified: npm run harness.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { program } from "../test/support/packages.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Where the module with the text is, and what it should be. */
export const target = path("../src/codemode/harness-text.js");
export async function generated() {
  const { stdout } = await promisify(execFile)(await program("esbuild"), [path("program.js"), "--minify", "--target=es2022"]);
  const text = stdout.trim().replace(/^export default *|;$/g, "");
  return `// Made of harness/program.js by npm run harness.\nexport const harness = ${JSON.stringify(text)};\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeFile(target, await generated());

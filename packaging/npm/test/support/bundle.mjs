// Packages from npm for what cannot load them as they are.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { register } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { packages, program } from "./packages.mjs";

const dataUrl = (text) => `data:text/javascript,${encodeURIComponent(text)}`;

/** Stands for cloudflare:workers outside of workerd: the packages name these classes when they are loaded. */
const workers = dataUrl("export class RpcTarget {} export class WorkerEntrypoint {} export class DurableObject {}");
const hook = `export const resolve = (specifier, context, next) => specifier === "cloudflare:workers" ? { url: ${JSON.stringify(workers)}, shortCircuit: true } : next(specifier, context);`;
let hooked = false;

/** Bundles the module text, which may import packages of the lock file, with further flags of esbuild. */
export async function bundle(text, flags) {
  const folder = await mkdtemp(join(await packages(), "bundle-"));
  const [entry, path] = [join(folder, "entry.mjs"), join(folder, "out.mjs")];
  await writeFile(entry, text);
  await promisify(execFile)(await program("esbuild"), [entry, "--bundle", "--format=esm", "--log-level=error", `--outfile=${path}`, ...flags]);
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** The exports of a module text on this Node, which may import packages of the lock file. */
export async function load(text) {
  if (!hooked) register(dataUrl(hook));
  hooked = true;
  const folder = await mkdtemp(join(await packages(), "load-"));
  try {
    await writeFile(join(folder, "entry.mjs"), text);
    return await import(pathToFileURL(join(folder, "entry.mjs")).href);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

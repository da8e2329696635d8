// Bundles of packages from npm for what cannot load them as they are.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { packages, program } from "./packages.mjs";

/** Stands for cloudflare:workers outside of workerd: the packages name these classes when they are loaded. */
const workers = "export class RpcTarget {} export class WorkerEntrypoint {} export class DurableObject {} export const env = {}; export const exports = {};";

/** Bundles the module text, which may import packages of the lock file, with further flags of esbuild. Resolves to its path. */
export async function bundle(text, flags = []) {
  const folder = await mkdtemp(join(await packages(), "bundle-"));
  await writeFile(join(folder, "entry.mjs"), text);
  await writeFile(join(folder, "workers.mjs"), workers);
  const out = join(folder, "out.mjs");
  await promisify(execFile)(await program("esbuild"), [join(folder, "entry.mjs"), "--bundle", "--format=esm", "--log-level=error", `--outfile=${out}`, ...flags]);
  return { path: out, workers: join(folder, "workers.mjs"), remove: () => rm(folder, { recursive: true, force: true }) };
}

/** The exports of a module text on this Node, with stand-ins for Cloudflare's own modules. */
export async function load(text) {
  const folder = await mkdtemp(join(await packages(), "stub-"));
  const stub = join(folder, "workers.mjs");
  await writeFile(stub, workers);
  const { path, remove } = await bundle(text, ["--platform=node", `--alias:cloudflare:workers=${stub}`]);
  try {
    return await import(pathToFileURL(path).href);
  } finally {
    await Promise.all([remove(), rm(folder, { recursive: true, force: true })]);
  }
}

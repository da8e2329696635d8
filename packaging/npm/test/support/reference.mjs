// workerd with the executor of @cloudflare/codemode.
import { readFile } from "node:fs/promises";
import { bundle } from "./bundle.mjs";
import { freePort } from "./daemon.mjs";
import { packageRoot } from "./repository.mjs";
import { startWorkerd } from "./workerd.mjs";

/** Starts it; ask(row) resolves to the text of its answer. */
export async function startReference() {
  const { path, remove } = await bundle('export * from "@cloudflare/codemode";', ["--platform=neutral", "--main-fields=module,main", "--external:cloudflare:*", "--external:node:*"]);
  try {
    const folder = `${packageRoot}test/differential/`;
    return await startWorkerd(await readFile(`${folder}reference-host.mjs`, "utf8"), {
      port: await freePort(),
      modules: { "codemode.js": path, "canon.mjs": `${folder}canon.mjs`, "providers.mjs": `${folder}providers.mjs` },
      date: "2025-06-01",
      flags: '"nodejs_compat", "enable_ctx_exports", "experimental"',
      more: 'bindings = [(name = "LOADER", workerLoader = ())],',
    });
  } finally {
    await remove();
  }
}

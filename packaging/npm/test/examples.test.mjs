// The examples in JavaScript as their users run them, with the package installed beside them, and those of the README.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { promisify } from "node:util";
import { bundle } from "./support/bundle.mjs";
import { freePort, startDaemon } from "./support/daemon.mjs";
import { packages, program } from "./support/packages.mjs";
import { packageRoot, read } from "./support/repository.mjs";
import { startWorkerd } from "./support/workerd.mjs";

const run = promisify(execFile);
const exampleAt = (name) => read(`docs/examples/${name}`);
const token = "0123456789abcdef0123";

let daemon;
let guarded;
let folder;
before(async () => {
  daemon = await startDaemon();
  const file = join(daemon.folder, "tokens");
  await writeFile(file, `me ${token}\n`, { mode: 0o600 });
  guarded = await startDaemon({ port: await freePort(), flags: ["--token-file", file] });
  folder = await mkdtemp(join(await packages(), "examples-"));
  await mkdir(join(folder, "node_modules"));
  await symlink(packageRoot.replace(/\/$/, ""), join(folder, "node_modules/executord"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module", dependencies: { executord: "*" } }));
});
after(async () => {
  await Promise.all([daemon?.stop(), guarded?.stop(), folder && rm(folder, { recursive: true, force: true })]);
});

for (const [runtime, name, want, ...args] of [
  ["node", "node.mjs", "5 adding\n"],
  ["bun", "node.mjs", "5 adding\n", "run"],
  ["deno", "deno.ts", "2\ncpu_timeout\n", "run", "--allow-all", "--check"],
  ["node", "codemode.mjs", "6\n"],
  ["node", "retain.mjs", "2\n"],
]) {
  test(`${name} on ${runtime}`, async () => {
    const file = join(folder, name);
    await writeFile(file, exampleAt(name).replace("unix:/tmp/executord.sock", daemon.url));
    const { stdout } = await run(await program(runtime), [...args, file], { cwd: folder, timeout: 60_000 });
    assert.equal(stdout, want);
  });
}

test("the program of the repository's README", async () => {
  const [, shown] = /^```js\n(.*?)^```$/ms.exec(read("README.md"));
  const file = join(folder, "readme.mjs");
  await writeFile(file, shown.replace("unix:/tmp/executord.sock", daemon.url));
  const { stdout } = await run(process.execPath, [file], { cwd: folder, timeout: 60_000 });
  assert.equal(stdout, "5\n");
});

test("worker.js on workerd", async () => {
  await writeFile(join(folder, "worker.js"), exampleAt("worker.js"));
  const { path, remove } = await bundle(`export { default } from ${JSON.stringify(join(folder, "worker.js"))};`, []);
  const port = await freePort();
  const bindings = Object.entries({ EXECUTORD_URL: guarded.tcp, EXECUTORD_TOKEN: token }).map(([name, text]) => `(name = "${name}", text = "${text}")`);
  const workerd = await startWorkerd(await readFile(path, "utf8"), { port, more: `bindings = [${bindings.join(", ")}],` });
  try {
    for (const [body, status, want] of [
      ["async () => { console.log('asking'); return shop.price_of({ item: 'tea' }); }", 200, { result: 3, logs: ["asking"] }],
      ["throw new Error('no')", 422, { error: "no", logs: [] }],
    ]) {
      const response = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body });
      assert.deepEqual([response.status, await response.json()], [status, want]);
    }
  } finally {
    await Promise.all([workerd.stop(), remove()]);
  }
});

test("the README shows examples that are run", async () => {
  const shown = [...(await readFile(join(packageRoot, "README.md"), "utf8")).matchAll(/^```js\n(.*?)^```$/gms)].map(([, text]) => text);
  assert.deepEqual(shown, ["node.mjs", "retain.mjs", "codemode.mjs"].map((name) => exampleAt(name).replace(/^(\/\/.*\n)+/, "")));
});

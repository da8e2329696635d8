// The package as it is, without a build step, on every runtime that it is for, against a real service.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { promisify } from "node:util";
import { chromium, posting, servePages } from "./support/browser.mjs";
import { freePort, startDaemon } from "./support/daemon.mjs";
import { program } from "./support/packages.mjs";
import { packageRoot } from "./support/repository.mjs";
import { startWorkerd } from "./support/workerd.mjs";

const token = "0123456789abcdef0123";
let open; // of everybody on this machine
let guarded; // by a token
let pages;

before(async () => {
  pages = await servePages();
  open = await startDaemon({ port: await freePort(), flags: ["--allow-origin", pages.origin] });
  const file = join(open.folder, "tokens");
  await writeFile(file, `me ${token}\n`, { mode: 0o600 });
  guarded = await startDaemon({ port: await freePort(), flags: ["--token-file", file] });
});
after(() => Promise.all([pages?.close(), open?.stop(), guarded?.stop()]));

const script = (options) => `import { check } from ${JSON.stringify(join(packageRoot, "test/support/portable.mjs"))};
for (const options of ${JSON.stringify(options)}) console.log(await check(options));`;

for (const [name, argsOf] of [
  ["node", (file) => [file]],
  ["deno", (file) => ["run", "--allow-all", "--no-config", file]],
  ["bun", (file) => ["run", file]],
]) {
  test(`${name}: over a unix socket, and over TCP with a token`, async () => {
    const file = join(open.folder, `${name}.mjs`);
    await writeFile(file, script([{ url: open.url }, { url: open.tcp }, { url: guarded.tcp, token }]));
    const { stdout } = await promisify(execFile)(await program(name), argsOf(file), { timeout: 60_000 });
    assert.equal(stdout, "ok\nok\nok\n");
  });
}

test("workerd: over TCP with a token, and refusals are typed", async () => {
  const worker = `import { check } from "./test/support/portable.mjs";
import { RemoteExecutor } from "./src/index.js";
export default { async fetch(request) {
  if (request.method !== "POST") return new Response("here");
  const { options, code } = await request.json();
  if (!code) return new Response(await check(options).catch((error) => String(error.stack)));
  return new Response(await new RemoteExecutor(options).execute({ code }).then(() => "ran", (error) => error.type));
} };`;
  const workerd = await startWorkerd(worker, { port: await freePort() });
  try {
    assert.equal(await workerd.ask({ options: { url: open.tcp } }), "ok");
    assert.equal(await workerd.ask({ options: { url: guarded.tcp, token } }), "ok");
    assert.equal(await workerd.ask({ options: { url: guarded.tcp }, code: "1" }), "unauthorized");
    assert.equal(await workerd.ask({ options: { url: open.tcp }, code: "1" }), "ran");
  } finally {
    await workerd.stop();
  }
});

test("a browser: over TCP", { skip: chromium === undefined && "there is no Chromium" }, async () => {
  const got = await pages.page(posting('import { check } from "/test/support/portable.mjs";', `check(${JSON.stringify({ url: open.tcp })})`));
  assert.equal(got, '"ok"');
  const refused = await pages.page(posting('import { RemoteExecutor } from "/src/index.js";', `new RemoteExecutor(${JSON.stringify({ url: open.tcp, token })})`));
  assert.match(refused, /cannot send a token/);
});

// What users get: files, size, types.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { generated, target } from "../harness/write.mjs";
import { packages, program } from "./support/packages.mjs";
import { packageRoot } from "./support/repository.mjs";

const run = promisify(execFile);
const manifest = JSON.parse(await readFile(join(packageRoot, "package.json"), "utf8"));
test("the package has its sources, their types and no more", async () => {
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: packageRoot });
  const sources = readdirSync(join(packageRoot, "src"), { recursive: true }).filter((name) => /\.(js|d\.ts)$/.test(name)).map((name) => `src/${name}`);
  assert.deepEqual(JSON.parse(stdout)[0].files.map(({ path }) => path).sort(), ["README.md", "package.json", ...sources].sort());
});

test("it depends on nothing", () => {
  for (const key of Object.keys(manifest)) assert.doesNotMatch(key, /dependencies/i);
  const texts = readdirSync(join(packageRoot, "src"), { recursive: true }).filter((name) => name.endsWith(".js"));
  return Promise.all(texts.map(async (name) => {
    for (const [, from] of (await readFile(join(packageRoot, "src", name), "utf8")).matchAll(/(?:from|import) "([^"]*)"/g)) assert.match(from, /^\.\.?\//, name);
  }));
});

test("the harness is what it is made of", async () => {
  assert.equal(await readFile(target, "utf8"), await generated(), "npm run harness writes it");
});

// The bars are those of the README: no more than it says, and not much less, so that it stays true and nothing grows unseen.
test("it is as small as the README says", async (t) => {
  const folder = await mkdtemp(join(await packages(), "size-"));
  const size = async (...entries) => {
    await writeFile(join(folder, "all.mjs"), entries.map((entry) => `export * from "${packageRoot}src/${entry}";`).join("\n"));
    await run(await program("esbuild"), [join(folder, "all.mjs"), "--bundle", "--minify", "--format=esm", "--log-level=error", `--outfile=${join(folder, "out.mjs")}`]);
    return (await stat(join(folder, "out.mjs"))).size / 1000;
  };
  try {
    const told = [...(await readFile(join(packageRoot, "README.md"), "utf8")).matchAll(/at most (\d+) KB/g)].map(([, most]) => Number(most));
    assert.equal(told.length, 2);
    for (const [i, entries] of [["index.js"], ["index.js", "codemode/index.js"]].entries()) {
      const got = await size(...entries);
      t.diagnostic(`${entries.at(-1)}: ${got.toFixed(1)} KB`);
      assert.ok(got <= told[i] && got > told[i] - 4, `${entries} has ${got.toFixed(1)} KB, and the README says ${told[i]}`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

const client = `
import { CodemodeExecutor } from "executord/codemode";
import { decode, encode, type ErrorType, ExecutorError, RemoteExecutor, type RetainedFunction, type RetainedIterator } from "executord";

const remote = new RemoteExecutor({ url: "unix:/x", token: "t", keepAliveMs: 5 });
export async function use(signal: AbortSignal): Promise<number> {
  await using scoped = remote;
  try {
    const { value, logs, stats } = await scoped.execute<number>({
      code: "1", form: "auto", input: new Map(), signal, limits: { cpuMs: 5 }, modules: { m: { source: "", type: "json" } },
      providers: { t: { add(a: number, b: number) { return this.signal.aborted ? a : b; }, users: { get: async (id: string) => id } }, any: (path, args) => [path, args] },
      fetch: (request) => fetch(request), onLog: (line) => line.level.length,
    });
    const { value: left, retained } = await scoped.execute<{ up: RetainedFunction<[number], number>; pages: RetainedIterator<string> }>({ code: "", retain: { ttlMs: 5 } });
    for await (const page of left.pages) page.length;
    const up: number = await left.up(1) + (await scoped.invoke(left.up, [1], { limits: { cpuMs: 1 }, signal })).value;
    left.up.dispose();
    retained?.dispose();
    return up + value + logs.length + stats.cpuMs + String(decode(await encode(1n))).length;
  } catch (error) {
    const type: ErrorType | undefined = error instanceof ExecutorError ? error.type : undefined;
    throw type;
  }
}
// @ts-expect-error
new RemoteExecutor({});
// @ts-expect-error
remote.execute({ code: 5 });
// @ts-expect-error
remote.execute({ code: "", limits: { cpu: 1 } });
// @ts-expect-error
new CodemodeExecutor({ timeout: 5 });
`;

const dialect = `
import type { Executor, ResolvedProvider } from "@cloudflare/codemode/browser";
import { RemoteExecutor } from "executord";
import { CodemodeExecutor, normalizeCode, sanitizeToolName } from "executord/codemode";

const executor: Executor = new CodemodeExecutor(new RemoteExecutor({ url: "unix:/x" }));
const other: Executor = new CodemodeExecutor({ url: "wss://host", timeout: 5, globalOutbound: null, modules: { a: "" } });
const third: Executor = new CodemodeExecutor({ executor: new RemoteExecutor({ url: "unix:/x" }), globalOutbound: { fetch: async () => new Response() } });
const providers: ResolvedProvider[] = [{ name: "codemode", fns: { add: async (a) => a } }];
export const results = [executor, other, third].map(async (x) => {
  const { result, error, logs } = await x.execute(normalizeCode("1") + sanitizeToolName("a"), providers);
  const lines: string[] = logs ?? [];
  return [result, error?.length, lines];
});
// @ts-expect-error
const none: Executor = new RemoteExecutor({ url: "unix:/x" });
`;

// The dialect's declarations name types of workerd and of other packages, which are not looked at.
for (const [name, text, skipLibCheck] of [["client", client, false], ["codemode", dialect, true]]) {
  test(`types: ${name}`, async () => {
    const home = await packages();
    const folder = await mkdtemp(join(home, "types-"));
    try {
      await symlink(packageRoot.replace(/\/$/, ""), join(folder, "executord"));
      await writeFile(join(folder, "use.ts"), text);
      const options = {
        strict: true, noEmit: true, module: "nodenext", target: "esnext", lib: ["esnext", "dom", "dom.iterable"], types: [], skipLibCheck,
        exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true,
        paths: { executord: ["./executord/src/index.d.ts"], "executord/codemode": ["./executord/src/codemode/index.d.ts"] },
      };
      await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["use.ts"] }));
      await run(process.execPath, [join(home, "node_modules/typescript/bin/tsc"), "-p", folder]).catch((error) => assert.fail(error.stdout || error.message));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}

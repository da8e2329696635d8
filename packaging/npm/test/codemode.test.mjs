// Runs the tests of the codemode adapter, which are in the folder codemode, by a Node that can say how much of it they reach.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import test from "node:test";
import { promisify } from "node:util";
import { program } from "./support/packages.mjs";
import { packageRoot } from "./support/repository.mjs";

/** In percent. */
const least = { lines: 90, branches: 90, functions: 90 };

test("src/codemode, and how much of it its tests reach", async (t) => {
  const floors = Object.entries(least).map(([what, percent]) => `--test-coverage-${what}=${percent}`);
  const flags = ["--test", "--test-reporter=tap", "--experimental-test-coverage", "--test-coverage-include=src/codemode/**", "--test-coverage-include-all", ...floors];
  const { NODE_TEST_CONTEXT, ...env } = process.env; // it is no part of this run
  const { stdout } = await promisify(execFile)(await program("node"), [...flags, "test/codemode/*.test.mjs"], { cwd: packageRoot, env, timeout: 300_000 })
    .catch((error) => assert.fail(error.stdout || error.message));
  const rows = stdout.split("\n").filter((line) => /\.js +\||all files/.test(line));
  assert.ok(rows.length > 8, stdout);
  for (const row of rows) t.diagnostic(row.replace(/^# */, ""));
});

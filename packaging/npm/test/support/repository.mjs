// Where things are in the repository.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../../../", import.meta.url));
export const packageRoot = fileURLToPath(new URL("../../", import.meta.url));

export const read = (path) => readFileSync(root + path, "utf8");

/** The objects of a file of JSON lines. */
export const lines = (path) => read(path).trimEnd().split("\n").map((line) => JSON.parse(line));

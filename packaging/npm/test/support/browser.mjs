// A headless Chromium that opens one page of the package, served as it is in the repository.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join, normalize } from "node:path";
import { existsSync } from "node:fs";
import { packageRoot } from "./repository.mjs";

/** The browser, undefined where there is none. */
export const chromium = (process.env.PATH ?? "").split(delimiter).flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name))).find(existsSync);

/** Serves pages of modules. page(source) resolves to what the module posts to /result; source may import from /src. */
export async function servePages() {
  let told;
  let source = "";
  const extra = new Map();
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (pathname === "/result") {
      let text = "";
      for await (const piece of request) text += piece;
      response.end();
      return told?.(text);
    }
    try {
      if (pathname === "/") return response.writeHead(200, { "content-type": "text/html" }).end('<!doctype html><script type="module" src="/page.js"></script>');
      const body = pathname === "/page.js" ? source : (extra.get(pathname) ?? (await readFile(join(packageRoot, normalize(pathname)))));
      response.writeHead(200, { "content-type": "text/javascript" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return {
    origin,
    extra,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
    async page(text) {
      source = `${text}\n`;
      const profile = await mkdtemp(join(tmpdir(), "executord-chromium-"));
      const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", `--user-data-dir=${profile}`];
      const browser = spawn(chromium, [...flags, `${origin}/`], { stdio: "ignore" });
      const ended = new Promise((resolve) => browser.on("exit", resolve));
      try {
        const result = new Promise((resolve) => (told = resolve));
        return await Promise.race([result, ended.then(() => Promise.reject(new Error("the browser ended")))]);
      } finally {
        browser.kill("SIGKILL");
        await ended;
        await rm(profile, { recursive: true, force: true, maxRetries: 5 });
      }
    },
  };
}

/** The text of a page that posts what expression resolves to. */
export const posting = (imports, expression) => `${imports}
const post = (text) => fetch("/result", { method: "POST", body: text });
try { await post(JSON.stringify(await (${expression}))); } catch (error) { await post(JSON.stringify({ error: String(error?.stack ?? error) })); }`;

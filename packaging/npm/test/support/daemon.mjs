// A real executord with real workers. EXECUTORD_TEST_BIN names the folder of its binaries; without it that is bin.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./repository.mjs";

const bin = process.env.EXECUTORD_TEST_BIN ?? join(root, "bin");

/** Starts a service on a unix socket, and on TCP with tcp: true. flags are further ones of executord. */
export async function startDaemon({ flags = [], port, path } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "executord-js-"));
  const socket = path ?? join(folder, "s");
  const listen = ["--listen", `unix:${socket}`, ...(port ? ["--listen", `tcp://127.0.0.1:${port}`] : [])];
  const child = spawn(join(bin, "executord"), [...listen, "--workers", "2", ...flags], { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.on("data", (text) => (errors = (errors + text).slice(-20_000)));
  const exited = new Promise((resolve) => child.on("exit", resolve));
  await Promise.race([reachable(socket), exited.then(() => Promise.reject(new Error(`executord ended: ${errors}`)))]);
  if (port) await reachable({ port, host: "127.0.0.1" });
  return {
    folder,
    url: `unix:${socket}`,
    tcp: port && `tcp://127.0.0.1:${port}`,
    pid: child.pid,
    get errors() { return errors; },
    kill: async (signal = "SIGTERM") => {
      child.kill(signal);
      await exited;
    },
    stop: async () => {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 15_000);
      await exited;
      clearTimeout(timer);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A TCP port of loopback that was free just now. */
export async function freePort() {
  const { createServer } = await import("node:net");
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function reachable(to) {
  for (;;) {
    const there = await new Promise((resolve) => {
      const socket = connect(typeof to === "string" ? { path: to } : to, () => resolve(true));
      socket.on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
    if (there) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// What a megabyte of bytes as an argument costs in CPU time, here and in the reference: npm run costs. Everything counts that
// takes part: this process, the service and its workers; workerd has its host and its sandbox in one process.
import { readdirSync, readFileSync } from "node:fs";
import { CodemodeExecutor } from "../../src/codemode/index.js";
import { startDaemon } from "../support/daemon.mjs";
import { startReference } from "../support/reference.mjs";

const bar = 0.2; // of the reference's CPU time
const times = 20;
const megabytes = 20;
const code = `async () => { const bytes = new Uint8Array(1 << 20).fill(7); let sum = 0; for (let i = 0; i < ${megabytes}; i++) sum += await codemode.take(bytes); return sum; }`;
const ticksPerSecond = 100; // USER_HZ of Linux on every architecture

const stat = (pid) => readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1).split(" ");

/** CPU time of a process and its children, in milliseconds. */
function cpuOf(pid) {
  let ticks = 0;
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const fields = stat(name);
      if (Number(name) === pid || Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // It ended meanwhile.
    }
  }
  return (1000 * ticks) / ticksPerSecond;
}

async function cost(pid, own, run) {
  await run(2);
  const before = [cpuOf(pid), process.cpuUsage()];
  await run(times);
  const { user, system } = process.cpuUsage(before[1]);
  return (cpuOf(pid) - before[0] + (own ? (user + system) / 1000 : 0)) / (times * megabytes);
}

const daemon = await startDaemon({ flags: ["--workers", "1"] });
const executor = new CodemodeExecutor({ url: daemon.url });
const ours = await cost(daemon.pid, true, async (n) => {
  for (let i = 0; i < n; i++) {
    const { result, error } = await executor.execute(code, [{ name: "codemode", fns: { take: async (bytes) => bytes.length } }]);
    if (result !== megabytes << 20) throw new Error(error);
  }
});
await executor.close();
await daemon.stop();

const reference = await startReference();
const theirs = await cost(reference.pid, false, async (n) => {
  if (Number(await reference.ask({ code, times: n })) !== n * (megabytes << 20)) throw new Error("the reference failed");
});
await reference.stop();

console.log(`a megabyte as an argument: ${ours.toFixed(1)} ms of CPU here, ${theirs.toFixed(1)} ms in workerd, ratio ${(ours / theirs).toFixed(2)}, bar ${bar}: ${ours <= bar * theirs ? "met" : "missed"}`);

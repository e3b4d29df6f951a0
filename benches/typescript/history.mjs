// The official TypeScript SDK on stored conversations. See src/history.rs for the interface of subjects.
// BENCH_SDK is the path of the SDK.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const sdk = await import(pathToFileURL(process.env.BENCH_SDK));

const [operation, config, dir, session, times] = process.argv.slice(2);
process.env.CLAUDE_CONFIG_DIR = config;

const OPERATIONS = {
  list: async () => (await sdk.listSessions({ dir, includeWorktrees: false })).length,
  page: async () => (await sdk.listSessions({ dir, includeWorktrees: false, limit: 50 })).length,
  info: async () => ((await sdk.getSessionInfo(session, { dir })) ? 1 : 0),
  read: async () => (await sdk.getSessionMessages(session, { dir })).length,
  // There is no option for the last messages.
  last: async () => (await sdk.getSessionMessages(session, { dir })).slice(-10).length,
  fork: async () => ((await sdk.forkSession(session, { dir })) ? 1 : 0),
};

function peakMib() {
  const kib = /VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1];
  return Number(kib) / 1024;
}

try {
  let wall = Infinity;
  let cpu = Infinity;
  let count = 0;
  for (let time = 0; time < Number(times); time += 1) {
    const began = process.hrtime.bigint();
    const before = process.cpuUsage();
    count = await OPERATIONS[operation]();
    wall = Math.min(wall, Number(process.hrtime.bigint() - began) / 1e9);
    const used = process.cpuUsage(before);
    cpu = Math.min(cpu, (used.user + used.system) / 1e6);
  }
  console.log(JSON.stringify({ count, wall, cpu, peak: peakMib() }));
} catch (error) {
  console.log(JSON.stringify({ failed: String(error) }));
}
process.exit(0);

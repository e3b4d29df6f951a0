// The official TypeScript SDK with its store in memory. See src/stores.rs for the interface of subjects.
// BENCH_SDK is the path of the SDK.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const sdk = await import(pathToFileURL(process.env.BENCH_SDK));

const [operation, kind, config, dir, session, countText] = process.argv.slice(2);
const count = Number(countText);
process.env.CLAUDE_CONFIG_DIR = config;

const now = () => Number(process.hrtime.bigint()) / 1e9;
const id = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

function store() {
  if (kind === "sqlite") throw new Error("the SDK has no such store");
  return new sdk.InMemorySessionStore();
}

async function append(writers) {
  const target = store();
  const each = Math.floor(count / writers);
  const write = async (writer) => {
    const key = { projectKey: "project", sessionId: id(writer) };
    for (let number = 0; number < each; number += 1) {
      const message = { role: "user", content: "x".repeat(400) };
      await target.append(key, [{ type: "user", uuid: id(number), message }]);
    }
  };
  const began = now();
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
  return [each * writers, now() - began];
}

async function importSession() {
  const began = now();
  const target = store();
  let copied = 0;
  const counting = {
    append: async (key, entries) => {
      copied += entries.length;
      await target.append(key, entries);
    },
    load: (key) => target.load(key),
  };
  await sdk.importSessionToStore(session, counting, { dir });
  return [copied, now() - began];
}

async function read() {
  const target = store();
  await sdk.importSessionToStore(session, target, { dir });
  const began = now();
  const messages = await sdk.getSessionMessages(session, { dir, sessionStore: target });
  return [messages.length, now() - began];
}

async function turns() {
  const options = { pathToClaudeCodeExecutable: process.env.BENCH_CLI, cwd: dir };
  if (kind !== "none") options.sessionStore = store();
  let next;
  const wait = () => new Promise((resolve) => { next = resolve; });
  let ready = wait();
  const prompts = async function* () {
    for (let turn = 0; turn <= count; turn += 1) {
      yield { type: "user", message: { role: "user", content: "hi" }, parent_tool_use_id: null };
      await ready;
      ready = wait();
    }
  };
  const times = [];
  let began = now();
  let turn = 0;
  for await (const message of sdk.query({ prompt: prompts(), options })) {
    if (message.type !== "result") continue;
    if (turn > 0) times.push(now() - began);
    turn += 1;
    began = now();
    next();
    if (turn > count) break;
  }
  times.sort((a, b) => a - b);
  return [count, times[Math.floor(times.length / 2)]];
}

const OPERATIONS = {
  append: () => append(1),
  append32: () => append(32),
  import: importSession,
  read,
  turn: turns,
};

function peakMib() {
  const kib = /VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1];
  return Number(kib) / 1024;
}

try {
  const before = process.cpuUsage();
  const [found, wall] = await OPERATIONS[operation]();
  const used = process.cpuUsage(before);
  const cpu = (used.user + used.system) / 1e6;
  console.log(JSON.stringify({ count: found, wall, cpu, peak: peakMib() }));
} catch (error) {
  console.log(JSON.stringify({ failed: String(error) }));
}
process.exit(0);

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
  if (kind !== "memory") throw new Error("the SDK has no such store");
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

// A session is a query with streaming prompts.
class Session {
  constructor(options) {
    // First, because the SDK may ask for a prompt at once.
    this.ready = new Promise((resolve) => { this.send = resolve; });
    this.messages = sdk.query({ prompt: this.prompts(), options });
  }

  async *prompts() {
    for (;;) {
      await this.ready;
      this.ready = new Promise((resolve) => { this.send = resolve; });
      yield { type: "user", message: { role: "user", content: "hi" }, parent_tool_use_id: null };
    }
  }

  async turn() {
    const began = now();
    this.send();
    for (;;) {
      const { value, done } = await this.messages.next();
      if (done) throw new Error("no result");
      if (value.type === "result") return now() - began;
    }
  }
}

async function turns() {
  const plain = { pathToClaudeCodeExecutable: process.env.BENCH_CLI, cwd: dir };
  const sessions = [new Session({ ...plain, sessionStore: store() }), new Session(plain)];
  const times = [[], []];
  for (let turn = 0; turn <= count; turn += 1) {
    for (const [at, session] of sessions.entries()) {
      const time = await session.turn();
      if (turn > 0) times[at].push(time);
    }
  }
  const median = (figures) => figures.sort((a, b) => a - b)[Math.floor(figures.length / 2)];
  return [count, median(times[0]), median(times[1])];
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
  const [found, wall, without] = await OPERATIONS[operation]();
  const used = process.cpuUsage(before);
  const cpu = without ?? (used.user + used.system) / 1e6;
  console.log(JSON.stringify({ count: found, wall, cpu, peak: peakMib() }));
} catch (error) {
  console.log(JSON.stringify({ failed: String(error) }));
}
process.exit(0);

// The official TypeScript SDK. See src/lib.rs for the interface of subjects.
// BENCH_SDK and BENCH_ZOD are the paths of the SDK and of zod.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { createSdkMcpServer, query, tool } = await import(pathToFileURL(process.env.BENCH_SDK));

const WARM = 50;
const now = () => process.hrtime.bigint();
const seconds = (from, to) => Number(to - from) / 1e9;

function allOf(count, seen) {
  if (seen !== count) throw new Error(`received ${seen} of ${count} messages`);
}

function median(figures) {
  figures.sort((a, b) => a - b);
  return figures[Math.floor(figures.length / 2)];
}

async function readMessages(work, count, cli) {
  const options = { pathToClaudeCodeExecutable: cli, includePartialMessages: work === "deltas" };
  let messages = 0;
  let deltas = 0;
  let arrived = 0n;
  let reported;
  for await (const message of query({ prompt: "go", options })) {
    if (message.type === "assistant") {
      messages += 1;
      if (work === "line") arrived = now();
    } else if (message.type === "stream_event") {
      deltas += 1;
    } else if (message.type === "result") {
      reported = message.result;
      if (work !== "line") arrived = now();
    }
  }
  allOf(work === "line" ? 1 : count, messages + deltas);
  return seconds(BigInt(reported), arrived);
}

async function answerQuestions(work, _count, cli) {
  const options = { pathToClaudeCodeExecutable: cli };
  if (work === "hook") {
    options.hooks = { PreToolUse: [{ hooks: [async () => ({})] }] };
  } else if (work === "permission") {
    options.canUseTool = async (_tool, input) => ({ behavior: "allow", updatedInput: input });
  } else {
    const { z } = await import(pathToFileURL(process.env.BENCH_ZOD));
    const add = async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] });
    const tools = [tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, add)];
    options.mcpServers = { calc: createSdkMcpServer({ name: "calc", tools }) };
  }
  const session = new Session(options);
  await session.start();
  const reported = await session.turn();
  session.stop();
  const figure = Number(reported);
  if (Number.isNaN(figure)) throw new Error(`unexpected result of the CLI: ${reported}`);
  return figure;
}

// A session is a query with streaming prompts.
class Session {
  constructor(options) {
    this.waiting = [];
    this.wake = () => {};
    this.ended = false;
    this.query = query({ prompt: this.prompts(), options });
    this.messages = this.query[Symbol.asyncIterator]();
  }

  async *prompts() {
    for (;;) {
      while (this.waiting.length > 0) yield this.waiting.shift();
      if (this.ended) return;
      await new Promise((resolve) => (this.wake = resolve));
    }
  }

  async start() {
    await this.query.initializationResult();
  }

  async turn() {
    const content = { role: "user", content: "go" };
    this.waiting.push({ type: "user", session_id: "", message: content, parent_tool_use_id: null });
    this.wake();
    for (;;) {
      const { value, done } = await this.messages.next();
      if (done) throw new Error("no result");
      if (value.type === "result") return value.result;
    }
  }

  stop() {
    this.ended = true;
    this.wake();
  }
}

async function first(_work, count, cli) {
  const starts = [];
  for (let start = 0; start < count; start += 1) {
    const began = now();
    const stream = query({ prompt: "go", options: { pathToClaudeCodeExecutable: cli } });
    const messages = stream[Symbol.asyncIterator]();
    await messages.next();
    starts.push(seconds(began, now()));
    while (!(await messages.next()).done);
  }
  return median(starts);
}

async function start(cli) {
  const session = new Session({ pathToClaudeCodeExecutable: cli });
  await session.start();
  return session;
}

async function sessions(_work, count, cli) {
  const began = now();
  const all = await Promise.all(Array.from({ length: count }, () => start(cli)));
  await Promise.all(all.map((session) => session.turn()));
  const took = seconds(began, now());
  all.forEach((session) => session.stop());
  return took;
}

function residentKib() {
  const line = readFileSync("/proc/self/status", "utf8").split("\n").find((line) => line.startsWith("VmRSS:"));
  return Number(line.split(/\s+/)[1]);
}

async function idle(_work, count, cli) {
  const all = [];
  for (let index = 0; index < WARM; index += 1) all.push(await start(cli));
  globalThis.gc();
  const before = residentKib();
  for (let index = 0; index < count; index += 1) all.push(await start(cli));
  globalThis.gc();
  const grown = residentKib() - before;
  all.forEach((session) => session.stop());
  return grown / count;
}

const WORKS = {
  flood: readMessages,
  deltas: readMessages,
  line: readMessages,
  hook: answerQuestions,
  permission: answerQuestions,
  tool: answerQuestions,
  first,
  sessions,
  idle,
};

const [work, count, cli] = process.argv.slice(2);
let result;
try {
  result = { figure: await WORKS[work](work, Number(count), cli) };
} catch (error) {
  result = { failed: String(error) };
}
console.log(JSON.stringify(result));
process.exit(0);

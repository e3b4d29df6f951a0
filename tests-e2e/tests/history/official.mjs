// Answers jobs with the TypeScript SDK: one JSON object per line on stdin, one result per line on
// stdout, in the same order.
import { createInterface } from "node:readline";

const sdk = await import(process.env.HISTORY_SDK);

const calls = {
  list: (job) =>
    sdk.listSessions({
      dir: job.directory,
      limit: job.limit,
      offset: job.offset,
      includeWorktrees: job.worktrees,
      includeProgrammatic: job.programmatic,
    }),
  info: (job) => sdk.getSessionInfo(job.session, { dir: job.directory }),
  messages: (job) =>
    sdk.getSessionMessages(job.session, {
      dir: job.directory,
      limit: job.limit,
      offset: job.offset,
      includeSystemMessages: job.system,
    }),
  subagents: async (job) => (await sdk.listSubagents(job.session, { dir: job.directory })).sort(),
  subagent_messages: (job) =>
    sdk.getSubagentMessages(job.session, job.agent, {
      dir: job.directory,
      limit: job.limit,
      offset: job.offset,
    }),
  rename: (job) => sdk.renameSession(job.session, job.text, { dir: job.directory }),
  tag: (job) => sdk.tagSession(job.session, job.text ?? null, { dir: job.directory }),
  archive: (job) => sdk.archiveSession(job.session, { dir: job.directory }),
  unarchive: (job) => sdk.unarchiveSession(job.session, { dir: job.directory }),
  delete: (job) => sdk.deleteSession(job.session, { dir: job.directory }),
  fork: async (job) =>
    (
      await sdk.forkSession(job.session, {
        dir: job.directory,
        upToMessageId: job.up_to,
        title: job.text,
      })
    ).sessionId,
};

const results = [];
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  process.env.CLAUDE_CONFIG_DIR = job.config;
  if (job.again) job.session = results.at(-job.again).ok ?? "none";
  let result;
  try {
    result = { ok: (await calls[job.call](job)) ?? null };
  } catch (error) {
    result = { error: String(error?.message ?? error) };
  }
  // Only forks are used by later jobs.
  results.push(job.call === "fork" ? result : {});
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

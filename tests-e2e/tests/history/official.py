"""Answers jobs with the Python SDK: one JSON object per line on stdin, one result per line on stdout,
in the same order."""

import dataclasses
import json
import os
import sys
import types

# The functions under test need neither the rest of the package nor its dependencies: `anyio` is used
# by session stores only.
package = types.ModuleType("claude_agent_sdk")
package.__path__ = [os.path.join(os.environ["HISTORY_SDK"], "claude_agent_sdk")]
internal = types.ModuleType("claude_agent_sdk._internal")
internal.__path__ = [os.path.join(package.__path__[0], "_internal")]
sys.modules["claude_agent_sdk"] = package
sys.modules["claude_agent_sdk._internal"] = internal
sys.modules["anyio"] = types.ModuleType("anyio")

from claude_agent_sdk._internal import session_mutations, sessions  # noqa: E402

NAMES = {
    "session_id": "sessionId",
    "last_modified": "lastModified",
    "file_size": "fileSize",
    "custom_title": "customTitle",
    "first_prompt": "firstPrompt",
    "git_branch": "gitBranch",
    "created_at": "createdAt",
}


def page(job):
    return {"limit": job.get("limit"), "offset": job.get("offset", 0)}


def info(found):
    if found is None:
        return None
    return {NAMES.get(name, name): value for name, value in dataclasses.asdict(found).items()}


def messages(found):
    return [dataclasses.asdict(message) for message in found]


def answer(job):
    call, directory = job["call"], job.get("directory")
    if call == "list":
        found = sessions.list_sessions(
            directory, include_worktrees=job.get("worktrees", True), **page(job)
        )
        return [info(one) for one in found]
    session = job["session"]
    if call == "info":
        return info(sessions.get_session_info(session, directory))
    if call == "messages":
        return messages(sessions.get_session_messages(session, directory, **page(job)))
    if call == "subagents":
        return sorted(sessions.list_subagents(session, directory))
    if call == "subagent_messages":
        found = sessions.get_subagent_messages(session, job["agent"], directory, **page(job))
        return messages(found)
    if call == "rename":
        return session_mutations.rename_session(session, job["text"], directory)
    if call == "tag":
        return session_mutations.tag_session(session, job.get("text"), directory)
    if call == "delete":
        return session_mutations.delete_session(session, directory)
    if call == "fork":
        fork = session_mutations.fork_session(
            session, directory, job.get("up_to"), job.get("text")
        )
        return fork.session_id
    raise ValueError(f"unknown call {call}")


results = []
for line in sys.stdin:
    job = json.loads(line)
    os.environ["CLAUDE_CONFIG_DIR"] = job["config"]
    if "again" in job:
        job["session"] = results[-job["again"]].get("ok") or "none"
    try:
        result = {"ok": answer(job)}
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    # Only forks are used by later jobs.
    results.append(result if job["call"] == "fork" else {})
    print(json.dumps(result))

"""The official Python SDK. See src/lib.rs for the interface of subjects."""

import asyncio
import gc
import json
import statistics
import sys
import time

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    ResultMessage,
    StreamEvent,
    create_sdk_mcp_server,
    query,
    tool,
)

WARM = 50


def all_of(count, seen):
    if seen != count:
        raise RuntimeError(f"received {seen} of {count} messages")


async def read_messages(work, count, cli):
    options = ClaudeAgentOptions(cli_path=cli, include_partial_messages=work == "deltas")
    if work == "line":
        options.max_buffer_size = count + 4096
    messages = deltas = arrived = 0
    reported = None
    async for message in query(prompt="go", options=options):
        if isinstance(message, AssistantMessage):
            messages += 1
            if work == "line":
                arrived = time.monotonic_ns()
        elif isinstance(message, StreamEvent):
            deltas += 1
        elif isinstance(message, ResultMessage):
            reported = message.result
            if work != "line":
                arrived = time.monotonic_ns()
    all_of(1 if work == "line" else count, messages + deltas)
    return (arrived - int(reported)) / 1e9


@tool("add", "Adds two numbers", {"a": int, "b": int})
async def add(arguments):
    return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}


async def look(_input, _tool_use_id, _context):
    return {}


async def allow(_tool, _input, _context):
    return PermissionResultAllow()


async def answer_questions(work, _count, cli):
    options = ClaudeAgentOptions(cli_path=cli)
    if work == "hook":
        options.hooks = {"PreToolUse": [HookMatcher(hooks=[look])]}
    elif work == "permission":
        options.can_use_tool = allow
    else:
        options.mcp_servers = {"calc": create_sdk_mcp_server("calc", tools=[add])}
    async with ClaudeSDKClient(options) as client:
        return float(await turn(client))


async def turn(client):
    await client.query("go")
    reported = None
    async for message in client.receive_response():
        if isinstance(message, ResultMessage):
            reported = message.result
    return reported


async def first(_work, count, cli):
    starts = []
    for _ in range(count):
        began = time.monotonic()
        stream = query(prompt="go", options=ClaudeAgentOptions(cli_path=cli))
        await anext(stream)
        starts.append(time.monotonic() - began)
        async for _ in stream:
            pass
    return statistics.median(starts)


async def start(cli):
    client = ClaudeSDKClient(ClaudeAgentOptions(cli_path=cli))
    await client.connect()
    return client


async def sessions(_work, count, cli):
    began = time.monotonic()
    clients = await asyncio.gather(*(start(cli) for _ in range(count)))
    for reported in await asyncio.gather(*(turn(client) for client in clients)):
        if reported is None:
            raise RuntimeError("a turn without a result")
    took = time.monotonic() - began
    for client in clients:
        await client.disconnect()
    return took


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


async def idle(_work, count, cli):
    clients = [await start(cli) for _ in range(WARM)]
    gc.collect()
    before = resident_kib()
    clients += [await start(cli) for _ in range(count)]
    gc.collect()
    grown = resident_kib() - before
    for client in clients:
        await client.disconnect()
    return grown / count


WORKS = {
    "flood": read_messages,
    "deltas": read_messages,
    "line": read_messages,
    "hook": answer_questions,
    "permission": answer_questions,
    "tool": answer_questions,
    "first": first,
    "sessions": sessions,
    "idle": idle,
}


def main():
    work, count, cli = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    try:
        result = {"figure": asyncio.run(WORKS[work](work, count, cli))}
    except Exception as error:
        result = {"failed": f"{type(error).__name__}: {error}"}
    print(json.dumps(result))


main()

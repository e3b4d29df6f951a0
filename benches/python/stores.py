"""The official Python SDK with its store in memory. See src/stores.rs for the interface of subjects."""

import asyncio
import dataclasses
import json
import os
import re
import statistics
import sys
import time

import claude_agent_sdk as sdk

operation, kind, config, directory, session, count = sys.argv[1:]
count = int(count)
os.environ["CLAUDE_CONFIG_DIR"] = config


def store():
    if kind == "sqlite":
        raise RuntimeError("the SDK has no such store")
    return sdk.InMemorySessionStore()


async def append(writers):
    target = store()
    each = count // writers

    async def write(writer):
        key = {"project_key": "project", "session_id": f"00000000-0000-4000-8000-{writer:012}"}
        for number in range(each):
            message = {"role": "user", "content": "x" * 400}
            uuid = f"00000000-0000-4000-8000-{number:012}"
            await target.append(key, [{"type": "user", "uuid": uuid, "message": message}])

    began = time.perf_counter()
    await asyncio.gather(*(write(writer) for writer in range(writers)))
    return each * writers, time.perf_counter() - began


async def import_session():
    began = time.perf_counter()
    target = store()
    await sdk.import_session_to_store(session, target, directory=directory)
    wall = time.perf_counter() - began
    key = {"project_key": sdk.project_key_for_directory(directory), "session_id": session}
    return len(await target.load(key)), wall


async def read():
    target = store()
    await sdk.import_session_to_store(session, target, directory=directory)
    began = time.perf_counter()
    messages = await sdk.get_session_messages_from_store(target, session, directory=directory)
    return len(messages), time.perf_counter() - began


async def turns():
    plain = sdk.ClaudeAgentOptions(cli_path=os.environ["BENCH_CLI"], cwd=directory)
    mirrored = dataclasses.replace(plain, session_store=store())
    times = [], []
    async with sdk.ClaudeSDKClient(options=mirrored) as one, sdk.ClaudeSDKClient(options=plain) as other:
        for turn in range(count + 1):
            for client, own in zip((one, other), times):
                began = time.perf_counter()
                await client.query("hi")
                async for _ in client.receive_response():
                    pass
                if turn:
                    own.append(time.perf_counter() - began)
    return count, statistics.median(times[0]), statistics.median(times[1])


OPERATIONS = {
    "append": lambda: append(1),
    "append32": lambda: append(32),
    "import": import_session,
    "read": read,
    "turn": turns,
}


def peak_mib():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


try:
    before = time.process_time()
    found, wall, *without = asyncio.run(OPERATIONS[operation]())
    cpu = without[0] if without else time.process_time() - before
    result = {"count": found, "wall": wall, "cpu": cpu, "peak": peak_mib()}
except Exception as error:
    result = {"failed": f"{type(error).__name__}: {error}"}
print(json.dumps(result))

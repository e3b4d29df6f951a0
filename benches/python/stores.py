"""The official Python SDK with its stores. See src/stores.rs for the interface of subjects."""

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


async def store():
    if kind == "memory":
        return sdk.InMemorySessionStore()
    if kind == "s3":
        return s3_store()
    if kind != "postgres":
        raise RuntimeError("the SDK has no such store")
    # Only here, because nothing else needs them.
    import asyncpg
    from postgres_session_store import PostgresSessionStore

    # A connection for each writer, as its README recommends.
    pool = await asyncpg.create_pool(os.environ["BENCH_STORE_URL"], min_size=1, max_size=32)
    target = PostgresSessionStore(pool=pool, table=os.environ["BENCH_STORE_NAME"])
    await target.create_schema()
    return target


requests = 0


def s3_store():
    import boto3
    from botocore.config import Config
    from s3_session_store import S3SessionStore

    bucket, endpoint = re.fullmatch(r"s3://([^/]+)/.*[?]endpoint=(.*)", os.environ["BENCH_STORE_URL"]).groups()
    # As many connections as writers.
    settings = Config(max_pool_connections=32, s3={"addressing_style": "path"})
    client = boto3.client("s3", region_name="us-east-1", endpoint_url=endpoint, config=settings)

    def count_request(**_):
        global requests
        requests += 1

    client.meta.events.register("before-send.s3", count_request)
    return S3SessionStore(bucket=bucket, prefix=os.environ["BENCH_STORE_NAME"], client=client)


async def append(writers):
    target = await store()
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
    target = await store()
    began = time.perf_counter()
    await sdk.import_session_to_store(session, target, directory=directory)
    wall = time.perf_counter() - began
    key = {"project_key": sdk.project_key_for_directory(directory), "session_id": session}
    return (len(await target.load(key)) if kind == "memory" else 0), wall


async def read():
    target = await store()
    if kind == "memory":
        await sdk.import_session_to_store(session, target, directory=directory)
    began = time.perf_counter()
    messages = await sdk.get_session_messages_from_store(target, session, directory=directory)
    return len(messages), time.perf_counter() - began


async def copy_all(target):
    ids = [info.session_id for info in sdk.list_sessions(directory=directory)]

    async def copy(some):
        for one in some:
            await sdk.import_session_to_store(one, target, directory=directory)

    await asyncio.gather(*(copy(ids[first::16]) for first in range(16)))
    return len(ids)


async def fill():
    target = await store()
    began = time.perf_counter()
    return await copy_all(target), time.perf_counter() - began


async def list_all():
    target = await store()
    if kind == "memory":
        await copy_all(target)
    began = time.perf_counter()
    return len(await sdk.list_sessions_from_store(target, directory=directory)), time.perf_counter() - began


# The CLI reads no transcript.
async def resume():
    target = await store()
    if kind == "memory":
        await sdk.import_session_to_store(session, target, directory=directory)
    options = sdk.ClaudeAgentOptions(
        cli_path=os.environ["BENCH_CLI"], cwd=directory, session_store=target, load_timeout_ms=600_000
    )
    async with sdk.ClaudeSDKClient(options=options):
        pass
    global baseline
    baseline = peak_mib()
    client = sdk.ClaudeSDKClient(options=dataclasses.replace(options, resume=session))
    began = time.perf_counter()
    await client.connect()
    wall = time.perf_counter() - began
    await client.disconnect()
    return 1, wall


async def turns():
    plain = sdk.ClaudeAgentOptions(cli_path=os.environ["BENCH_CLI"], cwd=directory)
    mirrored = dataclasses.replace(plain, session_store=await store())
    times, first = ([], []), 0
    async with sdk.ClaudeSDKClient(options=mirrored) as one, sdk.ClaudeSDKClient(options=plain) as other:
        for turn in range(count + 1):
            if turn == 1:
                first = requests
            for client, own in zip((one, other), times):
                began = time.perf_counter()
                await client.query("hi")
                async for _ in client.receive_response():
                    pass
                if turn:
                    own.append(time.perf_counter() - began)
    global requests_per_turn
    requests_per_turn = (requests - first) / count
    return count, statistics.median(times[0]), statistics.median(times[1])


OPERATIONS = {
    "append": lambda: append(1),
    "append32": lambda: append(32),
    "import": import_session,
    "read": read,
    "fill": fill,
    "list": list_all,
    "resume": resume,
    "turn": turns,
}


def peak_mib():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


baseline = requests_per_turn = 0
try:
    before = time.process_time()
    found, wall, *without = asyncio.run(OPERATIONS[operation]())
    cpu = without[0] if without else time.process_time() - before
    result = {"count": found, "wall": wall, "cpu": cpu, "peak": peak_mib() - baseline}
    result["requests"] = requests_per_turn
except Exception as error:
    result = {"failed": f"{type(error).__name__}: {error}"}
print(json.dumps(result))

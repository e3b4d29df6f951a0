"""The official Python SDK on stored conversations. See src/history.rs for the interface of subjects."""

import json
import math
import os
import re
import sys
import time

import claude_agent_sdk as sdk

operation, config, directory, session, times = sys.argv[1:]
os.environ["CLAUDE_CONFIG_DIR"] = config


def sessions(limit=None):
    return sdk.list_sessions(directory=directory, limit=limit, include_worktrees=False)


def messages():
    return sdk.get_session_messages(session, directory=directory)


OPERATIONS = {
    "list": lambda: len(sessions()),
    "page": lambda: len(sessions(50)),
    "info": lambda: int(sdk.get_session_info(session, directory=directory) is not None),
    "read": lambda: len(messages()),
    # There is no option for the last messages.
    "last": lambda: len(messages()[-10:]),
    "fork": lambda: int(sdk.fork_session(session, directory=directory) is not None),
}


def peak_mib():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


def measure():
    wall = cpu = math.inf
    count = 0
    for _ in range(int(times)):
        began, before = time.perf_counter(), time.process_time()
        count = OPERATIONS[operation]()
        wall = min(wall, time.perf_counter() - began)
        cpu = min(cpu, time.process_time() - before)
    return {"count": count, "wall": wall, "cpu": cpu, "peak": peak_mib()}


try:
    result = measure()
except Exception as error:
    result = {"failed": f"{type(error).__name__}: {error}"}
print(json.dumps(result))

#!/usr/bin/env python3
"""Starts an MCP server and ends it, and prints how long its first answer took and the names of its tools.

speak.py [--signal NAME] [--becomes NAME] COMMAND [ARGUMENT...]: by closing its input, or by a signal
to the process that was started. It fails unless the server answers, unless the process that was
started has become the program NAME, and unless whatever serves is gone at the end.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time

LIMIT = 60  # seconds


def main(args: list[str]) -> int:
    ending = None
    if args[0] == "--signal":
        ending, args = signal.Signals[args[1]], args[2:]
    program = None
    if args[0] == "--becomes":
        program, args = args[1], args[2:]
    began = time.monotonic()
    server = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert server.stdin and server.stdout

    def send(**message: object) -> None:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()

    def answer(id: int) -> dict:
        for line in server.stdout:
            if (message := json.loads(line)).get("id") == id:
                return message["result"]
        raise SystemExit(f"{args[0]} ended without an answer, with code {server.wait()}")

    client = {"name": "release-check", "version": "1"}
    send(id=1, method="initialize", params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    answer(1)
    took = time.monotonic() - began
    send(method="notifications/initialized")
    send(id=2, method="tools/list")
    tools = [tool["name"] for tool in answer(2)["tools"]]
    if program and (became := os.path.basename(os.readlink(f"/proc/{server.pid}/exe"))) != program:
        raise SystemExit(f"{args[0]} is {became} while it serves, not {program}")

    if ending:
        server.send_signal(ending)
    else:
        server.stdin.close()
    signal.alarm(LIMIT)  # ends this program where the server goes on
    while server.stdout.read(65536):  # ends with the last process that has the pipe
        pass
    code = server.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{took:.2f} s to the first answer, {used.ru_utime + used.ru_stime:.2f} s of a processor until the end")
    print(*tools, sep="\n")
    if code:
        print(f"{args[0]} ended with code {code}", file=sys.stderr)
    return int(code != 0 or "run_python" not in tools)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What test/load/run has vegeta call, and whether it was answered well.

    load.py begin URL N    begins N sandboxes, and prints a target of vegeta's for each
    load.py check          reads vegeta's results as JSON
"""

import base64
import json
import re
import sys
import urllib.request
from collections import Counter
from typing import Any

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "run_python",
}
SANDBOX = re.compile(r"\[sandbox ([a-z0-9.-]+)[:,]")
COUNTED = re.compile(r"n is (\d+)\n")


def call(**arguments: Any) -> bytes:
    """Returns a request of 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "run_python", "arguments": arguments, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def text(answer: bytes) -> tuple[str, bool]:
    """Returns the text of an answer, and whether it is of a call that went well."""
    for line in answer.decode(errors="replace").splitlines():
        line = line.removeprefix("data: ")
        if not line.startswith("{"):
            continue
        try:
            m = json.loads(line)
        except ValueError:
            break
        if "result" in m:
            return m["result"]["content"][0]["text"], not m["result"].get("isError")
        if "error" in m:
            return m["error"]["message"], False
    return "no answer", False


def begin(url: str, most: str) -> None:
    for _ in range(int(most)):
        request = urllib.request.Request(url, call(code="n = 0", sandbox="new", timeout=60), HEADERS)
        said, _ = text(urllib.request.urlopen(request, timeout=120).read())
        begun = SANDBOX.search(said)
        if not begun:
            raise SystemExit(f"no sandbox was begun: {said}")
        body = call(code="n += 1\nprint('n is', n)", sandbox=begun[1])
        target = {"method": "POST", "url": url, "body": base64.b64encode(body).decode()}
        target["header"] = {name: [value] for name, value in HEADERS.items()}
        print(json.dumps(target))


def check() -> None:
    counts: dict[str, list[int]] = {}
    wrong: Counter[str] = Counter()
    for line in sys.stdin:
        r = json.loads(line)
        said, well = text(base64.b64decode(r["body"] or ""))
        sandbox, counted = SANDBOX.search(said), COUNTED.match(said)
        if r["code"] == 200 and well and sandbox and counted:
            counts.setdefault(sandbox[1], []).append(int(counted[1]))
        else:
            wrong[f"{r['code']} {r['error'] or re.sub('sandbox [a-z0-9]+', 'sandbox', said)[:300]}"] += 1
    for why, times in wrong.most_common(10):
        print(f"FAIL {times} times: {why}")
    for sandbox, got in counts.items():
        if sorted(got) != list(range(1, len(got) + 1)):
            print(f"FAIL sandbox {sandbox} has counted {sorted(got)}")
            wrong[sandbox] += 1
    if wrong or not counts:
        raise SystemExit(1)
    print(f"ok   {sum(map(len, counts.values()))} calls, each counted once by one of {len(counts)} sandboxes")


{"begin": begin, "check": check}[sys.argv[1]](*sys.argv[2:])

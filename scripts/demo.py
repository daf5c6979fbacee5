"""An MCP client that shows mcp-bridge at work: demo.py BRIDGE NPM_DIRECTORY.

It starts the bridge over stdio, as Claude Code would, with a config file that names MCP servers, and calls run_python with
code that calls those servers' tools. Everything that is shown came out of the bridge. Standard library only.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATIENCE = 300  # seconds that one answer may take; a first start may load an image
BUILD = 16 * 60  # the same where packages are built first, which has fifteen minutes

FIRST = """
for issue in mcp_github.list_issues(owner="acme", repo="rocket", state="open"):
    print(f"#{issue['number']} {issue['title']}: {', '.join(label['name'] for label in issue['labels'])}")
"""

LABELS = """
import asyncio
from collections import Counter

pages = await asyncio.gather(*(mcp_github.list_issues(owner="acme", repo="rocket", page=n) for n in range(1, 4)))
issues = [issue for page in pages for issue in page]
for label, count in Counter(label["name"] for issue in issues for label in issue["labels"]).most_common(3):
    print(f"{count} x {label}")
most = max(issues, key=lambda issue: issue["comments"])
print(f"most discussed of {len(issues)}: #{most['number']} {most['title']}, {most['comments']} comments")
"""

SHOP = """
import asyncio

first = await mcp_shop.list_orders(page=1)
others = await asyncio.gather(*(mcp_shop.list_orders(page=p) for p in range(2, first["pages"] + 1)))
orders = [order for page in (first, *others) for order in page["orders"]]

revenue = {}
for order in orders:
    revenue[order["status"]] = revenue.get(order["status"], 0) + order["total_cents"]
for status, cents in sorted(revenue.items(), key=lambda item: -item[1]):
    print(f"{status:<10}{cents / 100:>10,.2f}")
print(f"{len(orders)} orders on {first['pages']} pages, and none of them went through the model")
"""

THREE_SERVERS = """
import asyncio

note = (await mcp_filesystem.read_text_file(path=NOTE)).strip()
print("the file says:", note)
echo, total, order = await asyncio.gather(
    mcp_everything.echo(message=note),
    mcp_everything.get_sum(a=40, b=2),
    mcp_shop.get_order(id="A-1001"),
)
print(echo)
print(total)
await mcp_filesystem.write_file(path=REPORT, content=f"{order['customer']} bought {order['items'][0]['name']}\\n")
"""

AT_ONCE = """
import asyncio, time

begun = time.perf_counter()
await asyncio.gather(*(mcp_shop.wait(ms=100) for _ in range(50)))
print(f"50 calls that take 100 ms each: {time.perf_counter() - begun:.2f} s")
"""

WALLS = """
import os, socket

print("user", os.getuid(), "- environment", sorted(os.environ))
for what, attempt in {
    "open the host's note.txt": lambda: open(NOTE),
    "write to /usr": lambda: open("/usr/here", "w"),
    "reach the network": lambda: socket.create_connection(("1.1.1.1", 53), timeout=2),
    "become root": lambda: os.setuid(0),
}.items():
    try:
        attempt()
        print(what, "- possible!")
    except OSError as error:
        print(what, "-", error.strerror)
"""

TABLE = """
# /// script
# dependencies = ["pandas", "matplotlib"]
# ///
import pandas as pd

first = mcp_shop.list_orders(page=1)
pages = [first, *(mcp_shop.list_orders(page=p) for p in range(2, first["pages"] + 1))]
orders = pd.DataFrame(order for page in pages for order in page["orders"])
revenue = orders.pivot_table("total_cents", orders["created"].str[:7], "status", "sum", fill_value=0) / 100
revenue.plot.bar(stacked=True, title="revenue by month", figsize=(8, 4))
revenue
"""


class Failure(Exception):
    """What went wrong, for a person."""


class Bridge:
    """One mcp-bridge process and the JSON-RPC lines to and from it."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.last_id = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failure(f"the bridge has ended, with {self.process.wait()}") from None

    def notify(self, method: str) -> None:
        self._send({"method": method})

    def ask(self, method: str, params: dict[str, Any], patience: int = PATIENCE) -> dict[str, Any]:
        self.last_id += 1
        self._send({"id": self.last_id, "method": method, "params": params})
        deadline = time.monotonic() + patience
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Failure(f"no answer to {method} within {patience} s") from None
            if line is None:
                raise Failure(f"the bridge ended with {self.process.wait()} before it answered {method}")
            message = json.loads(line)
            if message.get("id") != self.last_id:
                continue
            if "error" in message:
                raise Failure(f"{method}: {message['error']['message']}")
            result: dict[str, Any] = message["result"]
            return result

    def close(self) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):  # of what it wasn't sent any more
            self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("the bridge didn't end when its input did") from None


SCRATCH = "mcp-bridge-demo-"


def held(path: Path) -> int | None:
    """A descriptor of a directory of ours, with a lock that lasts as long as this process; None where somebody has it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):  # and wasn't removed meanwhile
                return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory that is removed at the end; or, where this process is killed, when the next one makes its own."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(SCRATCH + "*"):
        if (descriptor := held(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(descriptor)
    for _ in range(10):
        path = Path(tempfile.mkdtemp(prefix=SCRATCH)).resolve()
        if (descriptor := held(path)) is not None:
            break
        shutil.rmtree(path, ignore_errors=True)  # another demo has taken it for left, since its lock came a moment too late
    else:
        raise Failure(f"no directory in {parent} can be locked; set TMPDIR to one on a local file system")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def servers(bridge: Path, npm: Path, files: Path) -> dict[str, Any]:
    """The entries of the config file, in the form that Claude Desktop made common."""
    found: dict[str, Any] = {
        "github": {"command": str(bridge), "args": ["demo-server", "github"]},
        "shop": {"command": str(bridge), "args": ["demo-server"]},
    }
    bin_dir = npm / "node_modules" / ".bin"
    for name, arguments in {"everything": [], "filesystem": [str(files)]}.items():
        program = bin_dir / f"mcp-server-{name}"
        if (npm / "installed").exists():
            path = f"{bin_dir}{os.pathsep}{os.environ['PATH']}"
            found[name] = {"command": str(program), "args": arguments, "env": {"PATH": path}}
    return found


def indented(text: str, margin: str) -> str:
    return textwrap.indent(text.strip(), margin, lambda line: True)


def text_of(result: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")


def show(title: str, code: str, bridge: Bridge, use: list[str], may_fail: str | None = None) -> dict[str, Any]:
    """Prints the code and what came of it, and returns the result. An error is a failure unless it matches may_fail."""
    print(f"\n=== {title}")
    print(indented(code, "    | "))
    begun = time.perf_counter()
    patience = BUILD if may_fail else PATIENCE
    result = bridge.ask("tools/call", {"name": "run_python", "arguments": {"code": code, "servers": use}}, patience)
    took = time.perf_counter() - begun
    text = text_of(result)
    print(indented(text, "    > "))
    print(f"    {took:.2f} s from asking to the answer, with a fresh container")
    if result.get("isError") and not (may_fail and re.search(may_fail, text)):
        raise Failure(f"the run {title!r} failed")
    return result


NO_INDEX = r"building the environment data: downloading \S+: \S+ can't be reached"


def show_table(bridge: Bridge) -> None:
    """Has code make a table and a plot of a server's data, with the packages that come with the bridge."""
    print("\n(The packages of the next run are made into an image first, if they weren't yet: a minute or two.)")
    result = show("a table and a plot of a server's data", TABLE, bridge, ["shop"], NO_INDEX)
    if result.get("isError"):
        print("    No package index is reached from here, so there was no table and no plot.")
        return
    text = text_of(result)
    shown = [base64.b64decode(part["data"]) for part in result["content"] if part["type"] == "image"]
    written = re.search(r"written to (.*\.png)", text)
    if len(shown) != 1 or not written or Path(written[1]).read_bytes() != shown[0]:
        raise Failure("the plot isn't there")
    print(f"    the picture, of {len(shown[0]):,} bytes, went to the model as well: {written[1]}")


def main(bridge_path: Path, npm: Path) -> None:
    with scratch_directory() as scratch:
        files = scratch / "files"
        files.mkdir()
        note, report = files / "note.txt", files / "report.txt"
        note.write_text("from a file on this machine\n")
        known = servers(bridge_path, npm, files)
        config = scratch / "mcp.json"
        config.write_text(json.dumps({"mcpServers": known}, indent=2))

        begun = time.perf_counter()
        bridge = Bridge([str(bridge_path), "serve"], {"MCP_BRIDGE_LOG_LEVEL": "warn", **os.environ, "MCP_BRIDGE_CONFIG": str(config)})
        try:
            hello = bridge.ask("initialize", {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"},
            })
            bridge.notify("notifications/initialized")
            tools = bridge.ask("tools/list", {})["tools"]
            print(f"\n{hello['serverInfo']['name']} {hello['serverInfo']['version']} answers over stdio after "
                  f"{time.perf_counter() - begun:.2f} s; tools: {', '.join(tool['name'] for tool in tools)}; "
                  f"servers in its config: {', '.join(known)}")
            show("a first program: the server declares no results and answers with JSON as text", FIRST, bridge, ["github"])
            show("all pages at once", LABELS, bridge, ["github"])
            show("all pages of a server's list, added up in one call", SHOP, bridge, ["shop"])
            if len(known) == 4:
                code = THREE_SERVERS.replace("NOTE", repr(str(note))).replace("REPORT", repr(str(report)))
                show("three servers in one piece of code", code, bridge, ["everything", "filesystem", "shop"])
                print(f"    the bridge's machine now has {report.name}: {report.read_text().strip()}")
            show("many calls at once", AT_ONCE, bridge, ["shop"])
            show("what the code is held by", WALLS.replace("NOTE", repr(str(note))), bridge, [])
            show_table(bridge)
        finally:
            bridge.close()
    print("\ndemo: done; the bridge, its servers and its containers are gone")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} BRIDGE NPM_DIRECTORY")
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.default_int_handler)  # so that they clean up too
    try:
        main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
    except Failure as failure:
        sys.exit(f"demo: {failure}")
    except KeyboardInterrupt:  # Ctrl-C, which the bridge has had as well; or what the signals above are made
        print("\ndemo: stopped; the bridge, its servers and its containers are gone", file=sys.stderr)
        sys.exit(130)

"""Drives a real host with an imitation model, and checks what its model gets of mcp-bridge.

A host's own script calls main with a function that writes the host's configuration into a home
made for the test and returns the command to run. The bridge serves two real servers from npm.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Callable

import model

PATIENCE = 120.0  # seconds for a whole conversation, on a slow machine
ROOT = pathlib.Path(__file__).resolve().parents[2]
PNG = "iVBORw0KGgo"  # how every PNG begins in base64


@dataclass
class Setting:
    """Setting is what a host's script is given."""

    home: pathlib.Path
    url: str  # of the imitation
    bridge: str  # the program
    environ: dict[str, str]  # for the bridge's entry
    env: dict[str, str] = field(default_factory=dict)  # for the host; the script adds to it

    def program(self, name: str) -> str:
        return str(ROOT / ".cache/hosts/node_modules/.bin" / name)


Prepare = Callable[[Setting], list[str]]

SLOW = "import time\nprint('first')\ntime.sleep(2.5)\nprint(1 + 1, 'nd')"
IMAGE = "display(mcp_everything.get_tiny_image())"
# For each: the code, and what the model must get. A host's error repeats the code, so none holds it.
CONVERSATION = [
    ("a number", "print(6 * 7)", "42"),
    ("a list", "print([n * n for n in (1, 2, 3)])", "[1, 4, 9]"),
    ("a server's tool", "print(await mcp_everything.echo(message='hi'))", "Echo: hi"),
    ("an image", IMAGE, PNG),
    ("an error", "1 / 0", "ZeroDivisionError: division by zero"),
    ("progress", SLOW, "2 nd"),
]
# What hosts say where they take a right answer for a wrong one.
COMPLAINTS = ["expected record", "unknown token", "connection dropped", "closed with errors"]


class Trial:
    """Trial counts what held and what didn't, and prints it."""

    def __init__(self, host: str) -> None:
        self.host, self.failed = host, 0

    def check(self, what: str, ok: bool, seen: object = "") -> None:
        print(f"{'ok  ' if ok else 'FAIL'} {self.host}: {what}", flush=True)
        if not ok:
            self.failed += 1
            print(f"     seen: {str(seen)[:1500]}", flush=True)


def main(host: str, prepare: Prepare) -> None:
    """main runs a conversation and a cancelled one, and exits with 1 if something did not hold."""
    trial = Trial(host)
    with tempfile.TemporaryDirectory() as directory:
        talk(trial, prepare, pathlib.Path(directory) / "talk")
        cancel(trial, prepare, pathlib.Path(directory) / "cancel")
    sys.exit(1 if trial.failed else 0)


def setting(directory: pathlib.Path, url: str) -> Setting:
    home = directory / "home"
    (directory / "files").mkdir(parents=True)
    home.mkdir()
    node = ROOT / ".cache/npm/node_modules/.bin"
    servers = {
        "everything": {"command": str(node / "mcp-server-everything")},
        "files": {"command": str(node / "mcp-server-filesystem"), "args": [str(directory / "files")]},
    }
    config = directory / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    path = f"{node}:{os.environ['PATH']}"
    # The host has a home of its own. The bridge has the user's, where podman keeps the image.
    environ = {"HOME": os.environ["HOME"], "MCP_BRIDGE_CONFIG": str(config), "PATH": path, "XDG_STATE_HOME": str(directory / "state")}
    env = {"HOME": str(home), "PATH": path, "TERM": "dumb", "MARK_OF_THIS_TEST": str(directory)}
    for name in ("XDG_RUNTIME_DIR", "LANG"):
        if name in os.environ:
            env[name] = os.environ[name]
    return Setting(home, url, str(ROOT / "bin/mcp-bridge"), environ, env)


def start(prepare: Prepare, directory: pathlib.Path, imitation: model.Model) -> subprocess.Popen[str]:
    s = setting(directory, imitation.url)
    command = prepare(s)
    log = open(directory / "log", "w")
    return subprocess.Popen(
        command,
        cwd=directory,
        env=s.env,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        text=True,
        start_new_session=True,  # a terminal's Ctrl-C reaches the whole group
    )


def talk(trial: Trial, prepare: Prepare, directory: pathlib.Path) -> None:
    imitation = model.Model([{"code": code} for _, code, _ in CONVERSATION])
    host = start(prepare, directory, imitation)
    end(host, PATIENCE)
    log = (directory / "log").read_text()
    trial.check("it ends by itself", host.returncode == 0, log[-1500:])
    names = imitation.tools()
    trial.check("run_python is offered", any(n.endswith("run_python") for n in names), names)
    trial.check("no tool of a server is", not any("echo" in n for n in names), names)
    results = [json.dumps(r) for r in imitation.results()]
    for i, (what, _, want) in enumerate(CONVERSATION):
        got = results[i] if i < len(results) else "nothing"
        if what == "an image":  # some hosts put it beside the result
            trial.check(what, PNG in json.dumps(imitation.seen[-1]), got)
        else:
            trial.check(what, want in got, got)
    everything = log + "".join(results)
    heard = [c for c in COMPLAINTS if c in everything.lower()]
    trial.check("nothing is taken for an error", not heard, heard)
    gone(trial, "nothing is left", directory)


def cancel(trial: Trial, prepare: Prepare, directory: pathlib.Path) -> None:
    """cancel interrupts the host while its model's code runs."""
    mark = directory / "files/begun"
    code = f"await mcp_files.write_file(path={str(mark)!r}, content='x')\nwhile True: pass"
    host = start(prepare, directory, model.Model([{"code": code, "timeout": 100}]))
    begun = until(lambda: mark.exists() or host.poll() is not None, PATIENCE / 2) and mark.exists()
    trial.check("code that runs on has begun", begun, (directory / "log").read_text()[-1500:])
    os.killpg(host.pid, signal.SIGINT)
    end(host, 15)
    gone(trial, "nothing is left of a run that was interrupted", directory)


def end(host: subprocess.Popen[str], seconds: float) -> None:
    """end waits for the host, and kills its group if it does not end by itself."""
    try:
        host.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(host.pid, signal.SIGKILL)
        host.wait()


def gone(trial: Trial, what: str, directory: pathlib.Path) -> None:
    ok = until(lambda: not processes(directory), 20)
    trial.check(what, ok, processes(directory))


def processes(directory: pathlib.Path) -> list[str]:
    """processes are the command lines of all whose environment has the mark of this test."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(directory).encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:100])
        except OSError:
            continue
    return found


def until(condition: Callable[[], Any], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True

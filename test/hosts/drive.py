"""Drives a real host with an imitation model, and checks what its model gets of mcp-bridge.

A host's own script calls main with a function that writes the host's configuration into a home
made for the test, has mcp-bridge install itself there, and returns the command to run. The bridge
serves two real servers from npm. In the end the host has one of them itself, and mcp-bridge adopts it.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable

import model

PATIENCE = 120.0  # seconds for a whole conversation, on a slow machine
ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTRUCTIONS = (ROOT / "bridge/catalog/instructions.txt").read_text().strip().splitlines()[0]
PNG = "iVBORw0KGgo"  # how every PNG begins in base64


@dataclass
class Setting:
    """Setting is what a host's script is given."""

    home: pathlib.Path
    url: str  # of the imitation
    bridge: str  # the program
    environ: dict[str, str]  # for the bridge's entry
    env: dict[str, str] = field(default_factory=dict)  # for the host; the script adds to it
    servers: dict[str, Any] = field(default_factory=dict)  # for the host's own file
    together: threading.Barrier | None = None  # of the hosts that share the home
    by_host: bool = False  # the host's own command writes the entry first

    def program(self, name: str) -> str:
        return str(ROOT / ".cache/hosts/node_modules/.bin" / name)

    def install(self, host: str) -> None:
        """install has mcp-bridge put itself into the host's files, take itself out, and in again.

        Where hosts share a home, it waits for the others, and puts itself into the files of all at once.
        """
        if self.together:
            self.together.wait()
        else:
            self.there_and_back(host)

    def there_and_back(self, host: str) -> None:
        if not self.together:  # which has the first policy that install writes
            (self.home / "policy.toml").write_text('default = "allow"\n')
        before = self.files()
        shown = self.run("install", host, "--yes", *(["--host-command"] if self.by_host else []))
        if self.by_host and "The entry is written by:" not in shown:
            raise AssertionError(f"{host}: its own command isn't run: {shown}")
        if "this is mcp-bridge itself" not in self.run("servers"):
            raise AssertionError(f"{host}: the entry isn't found")
        self.run("install", host, "--yes", "--undo")
        after = self.files()
        if self.by_host:  # whose command keeps files of its own
            after = {path: text for path, text in after.items() if path in before}
        if after != before:
            raise AssertionError(f"{host}: undo leaves other files than there were")
        self.run("install", host, "--yes")

    def run(self, *arguments: str) -> str:
        """run runs mcp-bridge as the host's user does, and returns what it shows."""
        env = {"HOME": str(self.home), "PATH": self.env["PATH"]}
        if (policy := self.home / "policy.toml").exists():
            env["MCP_BRIDGE_POLICY"] = str(policy)
        done = subprocess.run(
            [self.bridge, *arguments], cwd=self.home.parent, env=env, check=True, capture_output=True, text=True
        )
        return done.stdout + done.stderr

    def files(self, below: str = "") -> dict[str, bytes]:
        paths = [p for p in (self.home / below).rglob("*") if p.is_file() and ".local" not in p.parts]
        return {str(p): p.read_bytes() for p in paths}

    def add_environ(self, config: pathlib.Path, servers: str, variables: str) -> None:
        """add_environ gives the entry that install has written the variables that the bridge needs here.

        It adds the host's own servers too.
        """
        settings = json.loads(config.read_text())
        settings[servers]["mcp-bridge"][variables] |= self.environ
        for name, server in self.servers.items():
            if variables == "environment":  # OpenCode's form
                server = {"type": "local", "command": [server["command"], *server.get("args", [])]}
            settings[servers][name] = server
        config.write_text(json.dumps(settings))


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


Part = Callable[[Trial, Prepare, pathlib.Path], None]


def main(host: str, prepare: Prepare, **more: Part) -> None:
    """main runs the parts that are named, or all: a conversation, a cancelled one, adopt, and the host's own.

    It exits with 1 if something did not hold.
    """
    trial = Trial(host)
    parts = {"talk": talk, "cancel": cancel, "adopt": adopt, **more}
    with tempfile.TemporaryDirectory() as directory:
        for name in sys.argv[1:] or parts:
            parts[name](trial, prepare, pathlib.Path(directory) / name)
    sys.exit(1 if trial.failed else 0)


def setting(directory: pathlib.Path, url: str, adopts: bool = False) -> Setting:
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
    if adopts:  # the bridge's own files and state are in the host's home, where mcp-bridge adopt writes them
        del environ["MCP_BRIDGE_CONFIG"]
        for variable, name in (("CONTAINERS_CONF", "containers.conf"), ("CONTAINERS_STORAGE_CONF", "storage.conf")):
            file = pathlib.Path(os.environ["HOME"]) / ".config/containers" / name
            if file.exists():
                environ[variable] = str(file)
        environ |= {"XDG_CONFIG_HOME": str(home / ".config"), "XDG_STATE_HOME": str(home / ".local/state")}
    env = {"HOME": str(home), "PATH": path, "TERM": "dumb", "MARK_OF_THIS_TEST": str(directory)}
    for name in ("XDG_RUNTIME_DIR", "LANG"):
        if name in os.environ:
            env[name] = os.environ[name]
    # Its tools are the same for each host, so that their tokens can be compared.
    own = {"files": servers["files"]} if adopts else {}
    return Setting(home, url, str(ROOT / "bin/mcp-bridge"), environ, env, own)


def start(prepare: Prepare, directory: pathlib.Path, imitation: model.Model) -> subprocess.Popen[str]:
    s = setting(directory, imitation.url)
    return started(s, prepare(s), directory)


def started(s: Setting, command: list[str], directory: pathlib.Path) -> subprocess.Popen[str]:
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


def by_host(trial: Trial, prepare: Prepare, directory: pathlib.Path) -> None:
    """by_host has the host's own command write the entry, and mcp-bridge take it out again."""
    s = setting(directory, "http://127.0.0.1:1")
    s.by_host = True
    s.env["PATH"] += os.pathsep + os.path.dirname(s.program("claude"))
    try:
        prepare(s)
    except (AssertionError, subprocess.CalledProcessError) as e:
        trial.check("its own command writes the entry, and --undo takes it out", False, f"{e} {getattr(e, 'stderr', '')}")
        return
    trial.check("its own command writes the entry, and --undo takes it out", True)


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


CALL = {"code": "print(await mcp_files.list_allowed_directories())"}


def loads(found: dict[str, str]) -> bool:
    """loads says whether the tools are the server's and ours."""
    return any("list_allowed_directories" in n for n in found) and any("run_python" in n for n in found)


def ours_alone(found: dict[str, str]) -> bool:
    return len(found) == 3 and all(n.endswith(("run_python", "search_tools", "read_output")) for n in found)


@dataclass
class Host:
    """Host is one that is ready to be started."""

    s: Setting
    command: list[str]
    imitation: model.Model
    directory: pathlib.Path

    def offered(self, right: Callable[[dict[str, str]], bool], *script: model.Json) -> dict[str, str]:
        """offered are the tools of the bridge and of the server that the host offers in a conversation.

        Some hosts begin before their servers do, so a conversation that isn't right is repeated.
        """
        for _ in range(5):
            self.imitation.script, self.imitation.seen = list(script), []
            end(started(self.s, self.command, self.directory), PATIENCE)
            all = self.imitation.definitions().items()  # some hosts have tools for resources
            found = {n: t for n, t in all if re.search("bridge|files", n) and "_mcp_resource" not in n}
            if right(found):
                break
        return found


SEARCH = "its tool search is on by default, and with ENABLE_TOOL_SEARCH=false it is about"


def figures(shown: str, host: str, searching: bool = False) -> list[int] | None:
    """figures are the tokens before and after that adopt names for a host, with its tool search if it is on."""
    line = next((line for line in shown.splitlines() if line.startswith(f"{host} loads definitions of about")), "")
    first, _, whole = line.partition(SEARCH)
    found = re.search(r"about ([\d,]+)(?: tokens)? before, ([\d,]+) after", first if searching or not whole else "about" + whole)
    return [int(n.replace(",", "")) for n in found.groups()] if found else None


def record(name: str, said: list[int], before: list[str], after: list[str]) -> None:
    """record keeps what adopt said of a host and the texts that the host sent, which TestHostTokens compares."""
    if directory := os.environ.get("MCP_BRIDGE_TEST_TOKENS"):
        (pathlib.Path(directory) / f"{name}.json").write_text(json.dumps({"said": said, "before": before, "after": after}))


def adopt(trial: Trial, prepare: Prepare, directory: pathlib.Path) -> None:
    """adopt moves the host's own server behind the bridge, and gives it back."""
    imitation = model.Model([])
    s = setting(directory, imitation.url, adopts=True)
    host = Host(s, prepare(s), imitation, directory)
    before = host.offered(loads)
    trial.check("before adopt it loads the server", loads(before), list(before))
    s.run("tools")
    backups = [f for f in s.files() if "before-mcp-bridge" in f]
    shown = s.run("adopt", "--yes")
    after = host.offered(ours_alone, CALL)
    trial.check("after adopt it has our three tools alone", ours_alone(after), list(after))
    results = json.dumps(imitation.results())
    trial.check("the moved server is called through us", str(directory / "files") in results, results)
    said = figures(shown, trial.host)
    trial.check("adopt says what it saves", said is not None, shown)
    if said and loads(before):
        instructions = [imitation.text("Servers, in quotes what they say"), imitation.text(INSTRUCTIONS)]
        record(trial.host, said, [*before.values(), *instructions], [*after.values(), *instructions])
    s.run("adopt", "--undo", "--yes")
    again = host.offered(lambda found: found == before)
    trial.check("after --undo it loads what it did", again == before, set(again) ^ set(before))
    left = [f for f in s.files() if "before-mcp-bridge" in f]
    trial.check("after --undo nothing of adopt is left", left == backups and not s.files(".config/mcp"), left)
    gone(trial, "nothing is left of the adopted server", directory)


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

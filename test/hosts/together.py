"""Drives Claude Code, Codex, Gemini CLI and OpenCode in one home, with its tool search where one has it.

mcp-bridge is told of no host: install --all finds them, and adopt moves the server that all of them have.
"""

import copy
import dataclasses
import json
import os
import pathlib
import re
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import claude_code
import codex
import drive
import gemini_cli
import model
import opencode

PREPARE = {
    "Claude Code": claude_code.prepare,
    "Codex": codex.prepare,
    "Gemini CLI": gemini_cli.prepare,
    "OpenCode": opencode.prepare,
}


def prepared(directory: pathlib.Path) -> tuple[drive.Setting, dict[str, drive.Host]]:
    shared = drive.setting(directory, "", adopts=True)
    shared.env["PATH"] += os.pathsep + os.path.dirname(shared.program("claude"))  # install looks for hosts' programs
    shared.together = threading.Barrier(len(PREPARE), lambda: shared.there_and_back("--all"), drive.PATIENCE)

    def prepare(name: str) -> drive.Host:
        imitation = model.Model([])
        s = dataclasses.replace(shared, url=imitation.url, env=dict(shared.env), servers=copy.deepcopy(shared.servers))
        command = PREPARE[name](s)
        s.env.pop("ENABLE_TOOL_SEARCH", None)
        return drive.Host(s, command, imitation, directory)

    with ThreadPoolExecutor(len(PREPARE)) as pool:
        return shared, dict(zip(PREPARE, pool.map(prepare, PREPARE)))


def listed(host: drive.Host, found: dict[str, str]) -> dict[str, str]:
    """listed are the tools that a host offers, and those that its tool search names to its model."""
    named = re.findall(r"mcp__(?:files|mcp-bridge)__\w+", json.dumps(host.imitation.seen[-1:]))
    return {**dict.fromkeys(named, ""), **found}


WORDS = (drive.ROOT / "discovery/hosts/tool-search.txt").read_text()


def sent(host: drive.Host, found: dict[str, str]) -> list[str]:
    """sent is what a host's model got of servers: definitions, instructions, and the names that its tool search announces."""
    texts = [v for o in model.walk(host.imitation.seen[-1:]) for v in o.values() if isinstance(v, str)]
    announced = next((t.partition(WORDS)[2] for t in texts if WORDS in t), "")
    names = [n for n in announced.splitlines() if re.match(r"mcp__(files|mcp-bridge)__", n)]
    instructions = [host.imitation.text("Servers, in quotes what they say"), host.imitation.text(drive.INSTRUCTIONS)]
    return [*found.values(), *instructions, *([WORDS, "\n".join(names)] if names else [])]


def main() -> None:
    trial = drive.Trial("together")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name) / "hosts"
        shared, hosts = prepared(directory)

        def check(name: str, what: str, ok: bool, seen: object = "") -> None:
            trial.host = f"{name}, of four"
            trial.check(what, ok, seen)

        before, texts = {}, {}
        for name, host in hosts.items():
            found = host.offered(lambda found: drive.loads(listed(host, found)))
            before[name], texts[name] = listed(host, found), sent(host, found)
            check(name, "after install --all it has the server and us", drive.loads(before[name]), list(before[name]))
            if name == "Claude Code":
                loaded = list(found)
                check(name, "it loads run_python, and the rest when its model looks for it", len(loaded) == 1, loaded)

        shared.run("tools")
        shown = shared.run("adopt", "--yes")
        for name, host in hosts.items():
            said = drive.figures(shown, name, searching=True)
            check(name, "adopt says what it saves", said is not None, shown)
            mark = directory / "files" / name.replace(" ", "-")
            write = {"code": f"await mcp_files.write_file(path={str(mark)!r}, content='x')"}
            found = host.offered(lambda found: drive.ours_alone(listed(host, found)), drive.CALL, write)
            after = listed(host, found)
            if said:
                drive.record(f"{name}, of four", said, texts[name], sent(host, found))
            check(name, "after adopt it has our three tools alone", drive.ours_alone(after), list(after))
            results = json.dumps(host.imitation.results())
            check(name, "the moved server is called through us", str(directory / "files") in results, results)
            refused = re.search("asked|said no|no clear yes", results) is not None
            check(name, "the first policy has it write nothing unasked", refused and not mark.exists(), results)

        stats = shared.run("stats")
        counted = re.findall(r"^[\w-]+ +files +- +[\d,]+ +[1-9]", stats, re.MULTILINE)
        check("mcp-bridge", "stats counts the calls of each", len(counted) == len(hosts), stats)
        shared.run("adopt", "--undo", "--yes")
        for name, host in hosts.items():
            again = listed(host, host.offered(lambda found: listed(host, found) == before[name]))
            check(name, "after --undo it has what it had", again == before[name], set(again) ^ set(before[name]))
        left = list(shared.files(".config/mcp"))
        check("mcp-bridge", "after --undo nothing of adopt is left", not left, left)
        trial.host = "together"
        drive.gone(trial, "nothing is left of the adopted server", directory)
    raise SystemExit(1 if trial.failed else 0)


main()

"""Installs the units of packaging/systemd below XDG_CONFIG_HOME, as their head says, and uses the bridge that they serve.

    units.py BRIDGE    the program, by its whole path
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import Callable

bridge = sys.argv[1]
config = pathlib.Path(os.environ["XDG_CONFIG_HOME"])
units = pathlib.Path(__file__).resolve().parents[2] / "packaging/systemd"
environ = {"XDG_STATE_HOME": str(config / "state"), "XDG_CONFIG_HOME": str(config)}
SLOW = "import time; time.sleep(5); print(6 * 7)"
failed = False


def check(what: str, ok: bool, seen: object = "") -> None:
    global failed
    print(f"{'ok  ' if ok else 'FAIL'} systemd: {what}", flush=True)
    if not ok:
        failed = True
        print(f"     seen: {seen}", flush=True)


def run(*command: str) -> str:
    done = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True)
    if done.returncode and done.stderr:
        print(f"{' '.join(command)}: {done.stderr.strip()}", flush=True)
    return done.stdout.strip()


def systemctl(*arguments: str) -> str:
    return run("systemctl", "--user", *arguments)


def call(bearer: str, code: str, begun: threading.Event | None = None) -> tuple[int, str]:
    """call returns the status of a call of run_python, and what its answer says.

    It sets begun when an answer that takes its time has begun.
    """
    meta = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "units", "version": "1"}, "clientCapabilities": {}}
    parameters = {"name": "run_python", "arguments": {"code": code}}
    parameters["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run_python"}
    headers["Authorization"] = f"Bearer {bearer}"
    request = urllib.request.Request(f"http://{address}/mcp", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            if begun:
                begun.set()
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def main_process() -> str:
    return systemctl("show", "--property=MainPID", "--value", "mcp-bridge.service")


def containers(process: str) -> list[str]:
    label = f"label=io.mcp-bridge.owner-pid={process}"
    command = ["podman", "ps", "--all", "--quiet", "--filter", label]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def family(process: str) -> set[str]:
    """family is a bridge's own processes: itself, its watchdog and its servers."""
    return {process, *run("pgrep", "--parent", process).split()}


def gone(process: str, processes: set[str]) -> bool:
    """gone reports whether of a bridge no container and no process is left within half a minute."""
    return until(lambda: not containers(process) and not any(os.path.exists(f"/proc/{p}") for p in processes), 30)


def until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


with socket.create_server(("127.0.0.1", 0)) as s:
    address = "127.0.0.1:%d" % s.getsockname()[1]
(config / "mcp-bridge").mkdir()
for name in ("mcp-bridge.service", "mcp-bridge.socket"):
    text = (units / name).read_text().replace("/usr/bin/mcp-bridge", bridge).replace("127.0.0.1:7878", address)
    (config / "systemd/user" / name).write_text(text)
(config / "team.json").write_text(json.dumps({"mcpServers": {"shop": {"command": bridge, "args": ["demo-server"]}}}))
settings = [f"MCP_BRIDGE_CONFIG={config}/team.json", *(f"{name}={value}" for name, value in environ.items())]
(config / "mcp-bridge/http.env").write_text("\n".join(settings) + "\n")
token = run(bridge, "token", "add", "alice").splitlines()[-1]
systemctl("daemon-reload")
said = systemctl("enable", "--now", "podman.socket", "mcp-bridge.socket")

ECHO = "print(mcp_shop.echo(text='hello'))"
check("it isn't started before the first connection", systemctl("is-active", "mcp-bridge.service") == "inactive", said)
answer = call("none", ECHO)
check("401 without a token", answer[0] == 401, answer)
answer = call(token, ECHO)
check("a call with one", answer[0] == 200 and r'"hello\n"' in answer[1], answer)
for n in range(3):
    killed = main_process()
    processes = family(killed)
    check("it has a container, a watchdog and a server", bool(containers(killed)) and len(processes) > 2, processes)
    systemctl("kill", "--kill-who=main", "--signal=KILL", "mcp-bridge.service")
    answer = call(token, ECHO)
    check("a call after kill -9, its server as approved as before", r'"hello\n"' in answer[1], answer)
    check("nothing of the killed one is left", gone(killed, processes), processes)

answers: list[tuple[int, str]] = []
runs = threading.Event()
slow = threading.Thread(target=lambda: answers.append(call(token, SLOW, runs)))
slow.start()
runs.wait(60)
stopped = main_process()
processes = family(stopped)
systemctl("stop", "mcp-bridge.socket", "mcp-bridge.service")
slow.join()
check("a call that runs when it is stopped ends well", bool(answers) and r'"42\n"' in answers[0][1], answers)
check("nothing is left", gone(stopped, processes), processes)
result = systemctl("show", "--property=Result", "--value", "mcp-bridge.service")
check("systemd takes the end for a good one", result == "success", result)
systemctl("disable", "--now", "podman.socket", "podman.service")
sys.exit(1 if failed else 0)

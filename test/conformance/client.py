"""Has mcp-bridge be the client of a server that the conformance suite runs, at the URL given last.

A run of code calls every tool of the server once, with arguments made from its schema. Where the
bridge says that the server wants a login, mcp-bridge login follows, with a browser that agrees to
everything, and the code runs again. Questions are answered with their defaults.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

Json = dict[str, Any]
ROOT = pathlib.Path(__file__).resolve().parents[2]
BRIDGE = str(ROOT / "bin/mcp-bridge")
LOGINS = 3  # a server may demand more after the first

BROWSER = """#!/usr/bin/env python3
import sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
"""

CODE = """
import json
server, calls = mcp_servers["suite"], json.loads({calls!r})
def sample(schema):
    if "default" in schema: return schema["default"]
    if schema.get("enum"): return schema["enum"][0]
    kinds = dict(string="x", integer=1, number=1.5, boolean=True, array=[], object={{}})
    kind = schema.get("type", "string")
    return kinds[kind if isinstance(kind, str) else kind[0]]
found = runtime.query_tool_docs("suite", detail="full")
for tool in await found if hasattr(found, "__await__") else found:
    schema = tool.get("inputSchema") or tool.get("input_schema") or {{}}
    properties = schema.get("properties", {{}})
    arguments = [{{k: sample(v) for k, v in properties.items() if k in schema.get("required", [])}}]
    name = tool["tool"]
    for given in [c["arguments"] for c in calls if c["name"] == name] or arguments:
        try:
            print(name, await runtime.call_tool("suite", name, given))
        except Exception as e:
            print(name, type(e).__name__, e)
"""


class Bridge:
    """Bridge is mcp-bridge serve with us as the host."""

    def __init__(self, env: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([BRIDGE], env=env, stdin=pipe, stdout=pipe, text=True)
        client = {"name": "conformance", "version": "1"}
        capabilities = {"elicitation": {"form": {}}, "roots": {}}
        version = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
        self.request("initialize", version)
        self.send({"method": "notifications/initialized"})

    def send(self, message: Json) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: Json) -> Json:
        self.send({"id": method, "method": method, "params": params})
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": answer(message)})
            elif message.get("id") == method:
                return dict(message.get("result") or message["error"])
        raise SystemExit("the bridge ended")

    def run(self, code: str) -> str:
        arguments = {"code": code, "timeout": 60}
        result = self.request("tools/call", {"name": "run_python", "arguments": arguments})
        return "\n".join(item.get("text", "") for item in result.get("content", []))

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(20)


def answer(question: Json) -> Json:
    if question["method"] == "roots/list":
        return {"roots": []}
    fields = question["params"].get("requestedSchema", {}).get("properties", {})
    return {"action": "accept", "content": {k: v["default"] for k, v in fields.items() if "default" in v}}


def main() -> None:
    url, context = sys.argv[-1], json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as directory:
        entry: Json = {"type": "http", "url": url}
        if "client_id" in context:
            entry["oauth"] = {"clientId": context["client_id"], "clientSecret": context.get("client_secret", "")}
        config = pathlib.Path(directory) / "servers.json"
        config.write_text(json.dumps({"mcpServers": {"suite": entry}}))
        browser = pathlib.Path(directory) / "xdg-open"
        browser.write_text(BROWSER)
        browser.chmod(0o755)
        env = os.environ | {"MCP_BRIDGE_CONFIG": str(config), "PATH": f"{directory}:{os.environ['PATH']}"}
        env |= {"DISPLAY": ":0", "XDG_STATE_HOME": directory, "XDG_CACHE_HOME": directory}
        env["MCP_BRIDGE_LOG_LEVEL"] = "error"
        code = CODE.format(calls=json.dumps(context.get("toolCalls", [])))
        for _ in range(LOGINS):
            bridge = Bridge(env)
            text = bridge.run(code)
            bridge.close()
            print(text)
            wanted = re.search(r"mcp-bridge (login suite.*)", text)
            if not wanted:
                return
            login = [BRIDGE, *wanted[1].split()]
            done = subprocess.run(login, env=env, input="y\n", text=True, timeout=60)
            print("login ended with", done.returncode)


main()

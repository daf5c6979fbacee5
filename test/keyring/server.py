"""An MCP server whose one tool is named by the token that it was given."""

import hashlib
import json
import os
import sys

token = os.environ.get("TOKEN") or os.environ.get("API_TOKEN") or ""
tool = {
    "name": "given_" + hashlib.sha256(token.encode()).hexdigest()[:16],
    "description": "does nothing",
    "inputSchema": {"type": "object"},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result: dict[str, object] = {}
    if message["method"] == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "token", "version": "1"},
        }
    elif message["method"] == "tools/list":
        result = {"tools": [tool]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

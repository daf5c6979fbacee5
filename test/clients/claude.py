"""Has Claude Code call run_python of a bridge that was added to it by its URL. Its model is an imitation.

    claude.py CLAUDE    the program
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "hosts"))
import model

imitation = model.Model([{"code": "print(6 * 7)"}])
env = os.environ | {"ANTHROPIC_BASE_URL": imitation.url, "ANTHROPIC_API_KEY": "imitation"}
env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
env |= {"ENABLE_TOOL_SEARCH": "false"}  # or its model, which only calls run_python, would have to search for that
said = ""
for _ in range(5):  # some conversations are over before the server is there
    host = [sys.argv[1], "-p", "go", "--allowedTools", "mcp__bridge__run_python"]
    done = subprocess.run(host, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if imitation.results():
        break
print(json.dumps(imitation.results()), said)

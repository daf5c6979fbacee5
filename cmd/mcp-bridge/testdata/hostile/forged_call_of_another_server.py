# Asks on its own socket for a server that is configured, but was not given to this run, and for the bridge's own parts.
# want: {"status":"ok","stdout":"[False, False, False, False, False]\n","error":null}
import json
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
asked = [("other", "echo"), ("runtime", "no_such_helper"), ("", ""), ("../other", "echo"), ("shop\x00other", "echo")]
for call, (provider, tool) in enumerate(asked, 1):
    frame = {"type": "tool_call", "callId": str(call), "providerName": provider, "safeToolName": tool, "input": {"text": "x"}}
    os.write(link, json.dumps(frame).encode() + b"\n")
answers = b""
while answers.count(b"\n") < len(asked):
    answers += os.read(link, 1 << 16)
print([json.loads(line)["ok"] for line in answers.splitlines()])

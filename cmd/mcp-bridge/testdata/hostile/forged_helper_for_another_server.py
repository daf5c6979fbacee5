# Has the runtime's helpers reach for a server that this run was not given: to load it, and to list its prompts.
# want: {"status":"ok","stdout":"refused\nrefused\n"}
import json
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
asked = [("load_server", {"server": "other"}), ("list_prompts", {"server": "other"})]
for call, (tool, given) in enumerate(asked, 1):
    frame = {"type": "tool_call", "callId": str(call), "providerName": "runtime", "safeToolName": tool, "input": given}
    os.write(link, json.dumps(frame).encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += os.read(link, 1 << 16)
    print("answered" if json.loads(answer)["ok"] else "refused")

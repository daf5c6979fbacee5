# Finds the guest's modules and runs the supervisor's own code in the child. It has none of the supervisor's descriptors.
# want: {"status":"ok|error|exit","stdout":"before\n{\"type\":\"done\",*"}
# again: {"status":"ok|error|exit","calls":0}
# next: {"status":"ok","calls":1}
# alone
import sys

print("before")
from guest import run, supervisor, wire

out = wire.Outbox(1)
fake = run.Run(1, (True, ""), out, out)
fake.running, fake.status, fake.id = True, 0, "run"
fake.send({"type": "done", "id": "run", "ok": True, "durationMs": 1, "wait": {"exited": True, "status": 0}})
out.flush()
supervisor.main(0, 1)

# Adds an audit hook that refuses everything. It can't be taken off again, and holds for this process only.
# want: {"status":"error|exit","exitCode":"!0","stdout":"before\n*"}
# again: {"status":"error","stdout":"","message":"The code did not run: *"}
# next: {"status":"error","stdout":"","calls":0}
import sys


def refuse(event, args):
    if not event.startswith("sys._"):
        raise PermissionError(event)


print("before")
sys.addaudithook(refuse)
print("after")

# Goes through the guest's objects by way of gc and frames, and empties every one that it can.
# want: {"status":"ok|error|exit","stdout":"before\n*"}
import gc
import sys

print("before")
frame = sys._getframe()
while frame:
    frame.f_locals.clear() if frame.f_back and frame.f_code.co_filename.startswith("<guest>") else None
    frame = frame.f_back
for thing in gc.get_objects():
    if type(thing).__module__.startswith("guest") and hasattr(thing, "__dict__"):
        vars(thing).clear()
print("emptied")

# Starts threads that never end, without end. Where a copy has ended there is room for one more.
# want: {"status":"exit|error|timeout|memory_limit","stdout":"before\n"}
# next: {"status":"ok|error"}
# timeout: 5
import threading
import time

print("before")
while True:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

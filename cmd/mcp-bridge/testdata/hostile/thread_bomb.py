# Starts threads that never end, without end.
# want: {"status":"exit|error|timeout|memory_limit","stdout":"before\n"}
# next: {"status":"error","stdout":"","calls":0}
# timeout: 5
import threading
import time

print("before")
while True:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

# Fills every place that it can write to, then calls a tool, prints and ends.
# want: {"status":"ok|memory_limit","stdout":"before\n*"}
# alone
print("before")
for place in ("/ipc", "/dev/shm", "/tmp", "/workspace"):
    try:
        with open(f"{place}/fill", "wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                pass
    except OSError as e:
        print(place, e.errno)
print(mcp_shop.add(a=2, b=3)["sum"])

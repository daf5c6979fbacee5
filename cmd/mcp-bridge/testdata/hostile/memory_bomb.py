# Takes memory without end.
# want: {"status":"memory_limit","stdout":"before\n"}
# timeout: 90
print("before")
hoard = []
while True:
    hoard.append(bytearray(1 << 20))

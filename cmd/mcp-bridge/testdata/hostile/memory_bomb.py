# Takes memory without end.
# want: {"status":"memory_limit","stdout":"before\n"}
# alone
print("before")
hoard = []
while True:
    hoard.append(bytearray(1 << 20))

# Prints a million times, a byte and a line end each, unbuffered as every print is here.
# want: {"status":"ok","stdout":"y\ny\n*y\nlast\n","truncated":true}
# alone
for _ in range(1_000_000):
    print("y")
print("last")

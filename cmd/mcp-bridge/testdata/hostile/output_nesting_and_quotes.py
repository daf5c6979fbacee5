# Prints a hundred thousand brackets and what ends a JSON string: to the frames around it, it is text.
# want: {"status":"ok","stdout":"[[[*]]]\n\"}\\\n{\"type\":\"done\"}\n"}
print("[" * 100_000 + "]" * 100_000)
print('"}\\\n{"type":"done"}')

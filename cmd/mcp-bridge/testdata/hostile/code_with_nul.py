# Compiles text with NUL and a billion brackets at run time.
# want: {"status":"ok","stdout":"SyntaxError\nrefused\n"}
try:
    compile("a\0b", "x", "exec")
except (SyntaxError, ValueError):
    print("SyntaxError")
try:
    compile("(" * 1_000_000, "x", "exec")
except (SyntaxError, MemoryError, RecursionError):
    print("refused")

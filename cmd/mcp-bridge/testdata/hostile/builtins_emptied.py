# Empties the builtins under everything that runs, the guest's own code too.
# want: {"status":"exit|error","exitCode":"!0","stdout":"before\n"}
import builtins

print("before")
builtins.__dict__.clear()

# Empties the builtins under everything that runs. Nothing fails by it but what Python does at the end.
# want: {"status":"ok","exitCode":0,"stdout":"before\n"}
import builtins

print("before")
builtins.__dict__.clear()

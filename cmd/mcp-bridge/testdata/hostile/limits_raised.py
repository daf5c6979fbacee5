# Tries to raise its hard limits.
# want: {"status":"ok","stdout":"refused\nrefused\nrefused\n"}
import resource

for number in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK):
    hard = resource.getrlimit(number)[1]
    try:
        resource.setrlimit(number, (hard + 1, hard + 1))
        print("raised")
    except (ValueError, PermissionError):
        print("refused")

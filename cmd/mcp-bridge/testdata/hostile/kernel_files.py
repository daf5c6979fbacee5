# Writes to the kernel's own files.
# want: {"status":"ok","stdout":"refused\nrefused\nrefused\nrefused\nrefused\n"}
for path in (
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/self/uid_map",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/kernel/uevent_helper",
):
    try:
        with open(path, "w") as file:
            file.write("0")
        print("written")
    except OSError:
        print("refused")

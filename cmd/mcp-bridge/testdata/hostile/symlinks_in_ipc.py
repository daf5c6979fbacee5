# Puts links and devices where the guest keeps its own files, before and while it might use them.
# want: {"status":"ok","stdout":"refused\n5\n"}
import os
import shutil
import stat

for name in os.listdir("/ipc"):
    path = f"/ipc/{name}"
    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
for name, target in (("servers", "/etc"), ("loop", "/ipc/loop"), ("mem", "/proc/1/mem"), ("up", "../../../../../etc/shadow")):
    os.symlink(target, f"/ipc/{name}")
try:
    os.mknod("/ipc/device", 0o600 | stat.S_IFBLK, os.makedev(8, 0))
except OSError:
    print("refused")
print(mcp_shop.add(a=2, b=3)["sum"])

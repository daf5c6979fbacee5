# Looks for the frames' descriptors and the memory of pid 1, which has the same uid. It is undumpable: all is refused.
# want: {"status":"ok","stdout":"refused\nrefused\nrefused\nrefused\nrefused\nrefused\nrefused\n"}
import os

for look in (
    lambda: os.listdir("/proc/1/fd"),
    lambda: open("/proc/1/mem", "rb").read(1),
    lambda: open("/proc/1/environ", "rb").read(),
    lambda: open("/proc/1/maps").read(),
    lambda: os.open("/proc/1/fd/64", os.O_WRONLY),
    lambda: os.listdir("/proc/1/root/"),
    lambda: os.readlink("/proc/1/exe"),
):
    try:
        print("got", look())
    except PermissionError:
        print("refused")

# Tells which CPython this is, as one line of JSON. It runs in a container of a base image.
import sys

sys.path[:] = [p for p in sys.path if p]  # not the working directory
import glob, importlib.util, json, os, platform, subprocess


def musl():
    for loader in sorted(glob.glob("/lib/ld-musl-*.so.1")):
        said = subprocess.run([loader], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL).stderr.decode()
        for line in said.splitlines():
            if line.startswith("Version "):
                return line.split()[1]
    return ""


def glibc():
    try:
        return os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    except (AttributeError, IndexError, OSError, ValueError):
        return ""


def cxx():
    try:
        import ctypes
    except ImportError:
        return True  # it isn't known; such a Python can import little anyway
    try:
        return bool(ctypes.CDLL("libstdc++.so.6"))
    except OSError:
        return False


machine = os.uname().machine
if sys.maxsize < 2**32:
    machine = {"x86_64": "i686", "aarch64": "armv7l"}.get(machine, machine)
libc = glibc()
print(json.dumps({
    "implementation": sys.implementation.name, "abiflags": getattr(sys, "abiflags", ""),
    "version": platform.python_version(), "machine": machine, "glibc": libc, "musl": "" if libc else musl(),
    "tag": sys.implementation.cache_tag, "magic": importlib.util.MAGIC_NUMBER.hex(), "cxx": cxx(),
}))

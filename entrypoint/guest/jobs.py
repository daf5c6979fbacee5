"""What the supervisor does in a sandbox without its code: a command, and files.

Each is a fork of the supervisor, in which no code of others has ever run. One for files stays closed
to other processes; what it reads is checked to be a file.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import time

from guest import artifacts, confine, wire
from guest.light_typing import TYPE_CHECKING, Any
from guest.output import Output
from guest.refused import Refused

if TYPE_CHECKING:
    from guest.run import Run

HOME = "/workspace"
MAX_LISTED = 1000  # entries of a directory
MAX_ZIPPED = 10_000  # files
HELD = 24 << 20  # bytes of an answer

_CODES = {errno.ENOENT: "not_found", errno.EISDIR: "not_a_file", errno.ENOTDIR: "not_a_directory"}
_CODES |= {errno.EACCES: "denied", errno.EPERM: "denied", errno.EROFS: "denied", errno.ELOOP: "denied"}


class Answer:
    """The bytes that a process for files writes, in the place of Output."""

    due, rests_until = None, 0.0

    def __init__(self, fd: int) -> None:
        self.open = {fd}
        self.data = bytearray()

    def awaited(self, now: float) -> set[int]:
        return self.open

    def take(self, fd: int) -> int:
        data = wire.read_some(fd, 1 << 20)
        if data == b"":
            self.open.discard(fd)
            os.close(fd)
        self.data += (data or b"")[: HELD - len(self.data)]
        return len(data or b"")

    def take_all(self) -> None:
        for fd in sorted(self.open):
            while self.take(fd):
                pass

    def flush(self) -> None:
        pass

    def finish(self, limit: int, keep: bool = False) -> None:
        self.take_all()
        for fd in self.open:
            os.close(fd)
        self.open.clear()


def start(run: Run, order: wire.Frame) -> Output | Answer:
    """Starts what an exec or files frame asks for, as run.job, and returns what it writes to.

    Raises OSError where no process can be started.
    """
    fds: list[int] = []
    try:
        fds += os.pipe()
        fds += os.pipe()
        pid = os.fork()
    except OSError:
        for fd in fds:
            os.close(fd)
        raise
    out, err = fds[:2], fds[2:]
    if pid == 0:
        try:
            _alone(out[1], err[1])
            if order["type"] == "exec":
                _execute(order)
            else:
                _answer(order)
        except BaseException as e:
            os.write(2, f"{type(e).__name__}: {e}\n".encode(errors="replace"))
        finally:
            os._exit(wire.EXIT_INTERNAL)
    run.job = pid
    os.close(out[1])
    os.close(err[1])
    for fd in (out[0], err[0]):
        os.set_blocking(fd, False)
    if order["type"] == "exec":
        return Output(out[0], err[0], run.output)
    os.close(err[0])
    return Answer(out[0])


def _alone(out: int, err: int) -> None:
    """Keeps nothing of the supervisor's but its code."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _execute(order: wire.Frame) -> None:
    """Becomes the shell, with the limits of a run."""
    from guest import limits

    confine.be_the_child()
    limits.oom_score(limits.FIRST)
    limits.prepare()
    limits.apply(*limits.of(order["options"]))
    given = {**(order["options"].get("variables") or {}), **(order.get("variables") or {})}
    directory = str(order.get("directory") or (HOME if os.path.isdir(HOME) else "/"))
    try:
        os.chdir(directory)
    except OSError as e:
        os.write(2, f"{directory}: {e.strerror}\n".encode(errors="replace"))
        os._exit(1)
    try:
        os.execve("/bin/sh", ["sh", "-c", str(order["command"])], {**os.environ, "HOME": HOME, **given})
    except (OSError, ValueError) as e:
        os.write(2, f"the command can't be run: {e}\n".encode(errors="replace"))
        os._exit(127)


def _answer(order: wire.Frame) -> None:
    """Writes a line that says how it went, and then what was asked for."""
    if os.path.isdir(HOME):
        os.chdir(HOME)
    path, limit = str(order["path"]), order.get("limit") or 0
    data = b""
    more: wire.Frame = {}
    try:
        if "\0" in path or not path:
            raise Refused("not_found", "it is no path")
        if order["op"] == "read":
            data = _read(path, limit)
        elif order["op"] == "write":
            _write(path, str(order.get("data") or ""))
        elif order["op"] == "list":
            more["entries"], more["more"] = _entries(path)
        elif order["op"] == "pack":
            from guest import packing

            data, more["entries"], more["more"] = packing.packed(path, order.get("offset") or 0, limit)
        elif order["op"] == "unpack":
            from binascii import a2b_base64

            from guest import packing

            packing.unpack(path, a2b_base64(str(order.get("data") or "")))
        else:
            data = _zipped(path, limit)
    except Refused as e:
        more["error"] = {"code": e.args[0], "message": e.args[1]}
    except OSError as e:
        code = _CODES.get(e.errno or 0, "failed")
        more["error"] = {"code": code, "message": e.strerror or str(e)}
    line = json.dumps(more).encode("utf-8", "replace") + b"\n"
    for part in (line, data):
        view = memoryview(part)
        while view:
            view = view[os.write(1, view) :]
    os._exit(0)


def _open(path: str) -> tuple[int, os.stat_result]:
    """A regular file; nothing that could block is opened."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    about = os.fstat(fd)
    if not stat.S_ISREG(about.st_mode):
        os.close(fd)
        raise Refused("not_a_file", "it is no regular file")
    return fd, about


def _read(path: str, limit: int) -> bytes:
    fd, about = _open(path)
    if about.st_size > limit:
        raise Refused("too_large", f"it has {about.st_size:,} bytes; at most {limit:,} can be read")
    with os.fdopen(fd, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:  # a file of /proc, say, has no size
        raise Refused("too_large", f"it has more than {limit:,} bytes, which is the most that can be read")
    return data


def _write(path: str, data: str) -> None:
    """Writes a file beside the path and puts it into its place, so it is there whole or not at all."""
    from binascii import a2b_base64

    if os.path.isdir(path):
        raise Refused("not_a_file", "it is a directory")
    folder, name = os.path.split(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.isfile(path) else 0o644
    new = f"{folder}/.{name[:100]}.{os.urandom(4).hex()}"
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(fd, "wb") as file:
            file.write(a2b_base64(data))
        os.replace(new, path)
    except BaseException:
        if os.path.lexists(new):
            os.unlink(new)
        raise


def _entries(path: str) -> tuple[list[dict[str, Any]], bool]:
    found = []
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names[:MAX_LISTED]:
        try:
            about = os.stat(os.path.join(path, name), follow_symlinks=False)
        except OSError:  # it has just gone
            continue
        kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
        kind = kinds.get(stat.S_IFMT(about.st_mode), "other")
        shown = name.encode("utf-8", "replace").decode()
        found.append({"name": shown, "type": kind, "size": about.st_size, "modified": about.st_mtime})
    return found, len(names) > MAX_LISTED


def _zipped(path: str, limit: int) -> bytes:
    """The regular files below a directory. Links aren't followed."""
    import io
    import zipfile

    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise Refused("not_a_directory", "it is no directory")
    buffer, left = io.BytesIO(), MAX_ZIPPED
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                whole = os.path.join(folder, name)
                if not stat.S_ISREG(os.lstat(whole).st_mode):
                    continue
                left -= 1
                fd, about = _open(whole)
                info = zipfile.ZipInfo(os.path.relpath(whole, path).encode("utf-8", "replace").decode())
                info.date_time = max((1980, 1, 1, 0, 0, 0), time.gmtime(about.st_mtime)[:6])
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, about.st_mode << 16
                with os.fdopen(fd, "rb") as source, archive.open(info, "w") as target:
                    while data := source.read(1 << 16):
                        target.write(data)
                        if buffer.tell() > limit:
                            said = f"the zip file has more than {limit:,} bytes, the most that can be had"
                            raise Refused("too_large", said)
                if left <= 0:
                    raise Refused("too_large", f"it has more than {MAX_ZIPPED:,} files")
    data = buffer.getvalue()
    if len(data) > limit:
        raise Refused("too_large", f"the zip file has {len(data):,} bytes; at most {limit:,} can be had")
    return data


def tell(run: Run, answer: Answer, frame: wire.Frame) -> None:
    """Sends the data of an answer, and adds to done what else it says."""
    line, _, data = bytes(answer.data).partition(b"\n")
    said = wire.decode(line)
    if said is None:
        return  # it was killed: done says so
    if error := said.get("error"):
        frame["ok"], frame["error"] = False, error
        return
    for name in ("entries", "more"):
        if name in said:
            frame[name] = said[name]
    for piece in artifacts.frames("", "", data) if data else ():
        run.send({"type": "data", "id": run.id, "data": piece["data"]})

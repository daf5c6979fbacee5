"""The supervisor: forks the child that will run the code, and watches over it."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys
from _socket import socketpair  # socket itself takes 2 ms more

from guest import confine, wire

_exit, _write = os._exit, os.write  # the code may put something else in their place

PRIVATE = 64  # where private descriptors begin, out of the way of code that closes or reuses low ones


def main(stdin: int, stdout: int) -> int:
    """Serves one host on two descriptors, and returns the exit status of the process.

    The process is its own: 0 and 1 are redirected, system calls filtered, and a child is forked.
    An argument says what packages its code has (environment.py).
    """
    order = wire.decode(sys.argv[1].encode()) if len(sys.argv) > 1 else None
    host_in, host_out = private(stdin), private(stdout)
    redirect(stdin, stdout)
    own = confine.confine()
    ours, theirs = socketpair()
    pipes = [os.pipe(), os.pipe()]
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(host_in)
        os.close(host_out)
        run_child(theirs.detach(), pipes[0][1], pipes[1][1], order)
    theirs.close()
    for _, write in pipes:
        os.close(write)
    link = ours.detach()
    for fd in (host_in, host_out, link, pipes[0][0], pipes[1][0]):
        os.set_blocking(fd, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if os.getpid() == 1:
            signal.signal(number, signal.SIG_IGN)
    from guest.loop import Loop  # while the child makes itself ready

    gc.freeze()  # boot.py has switched it off
    gc.enable()
    return Loop(host_in, host_out, link, (pipes[0][0], pipes[1][0]), pid, own, order).run()


def private(fd: int, least: int = PRIVATE) -> int:
    """A copy that no program started from here on inherits."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
    except OSError:  # RLIMIT_NOFILE is lower than that
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def redirect(stdin: int, stdout: int) -> None:
    """Points 0 at nothing and 1 at 2, so that no C library and no child process can reach a frame."""
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(2, 1)
    for fd in {stdin, stdout} - {0, 1, 2}:
        os.close(fd)
    os.close(null)


def run_child(link: int, stdout: int, stderr: int, order: wire.Frame | None) -> None:
    """The child's first steps; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        kept = private(link)
        os.closerange(3, kept)
        os.closerange(kept + 1, max(os.sysconf("SC_OPEN_MAX"), kept + 1))
        confine.be_the_child()
        from guest import child

        child.main(kept, order)
    except BaseException:
        _write(kept, b'{"type":"broken"}\n')  # not by way of json, which may be what the code has broken
        import traceback  # knows the sources of modules that have no files

        traceback.print_exc()
    finally:
        _exit(wire.EXIT_INTERNAL)

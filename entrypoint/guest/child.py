"""The child: warms up, waits for its one execute, runs the code, and reports its exception."""

from __future__ import annotations

import atexit
import gc
import os
import select
import signal
import sys
import threading

from guest import errors, execute, limits, mcp_runtime, streams, wire
from guest.calls import report_unawaited
from guest.displayhook import Display
from guest.errors import each
from guest.fastexit import FastExit
from guest.forgotten import report_variables
from guest.light_typing import Any
from guest.link import Link

_exit = os._exit  # the code may put something else in its place

HOME = "/workspace"
GRACE = 0.5  # seconds that threads have after code has failed
MAX_NAMED = 5  # threads
STANDBY = 20  # milliseconds without an execute after which none is expected soon

# What much code imports: asyncio takes as long as the guest itself, the rest half as long. What
# asyncio needs comes first, so an execute that comes meanwhile doesn't wait for all of it.
AHEAD = (
    "selectors", "subprocess", "socket", "ssl", "concurrent.futures", "inspect", "asyncio",
    "guest.arguments", "guest.signatures", "guest.tools",
)  # fmt: skip
OUT = "out"  # below HOME: files that are left here are handed over


def main(fd: int, order: wire.Frame | None = None) -> None:
    """Runs on the descriptor of the link; returns only when something of the guest's own failed.

    order is what the container was started for, besides to run code with the standard library.
    """
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    limits.oom_score(limits.FIRST)
    streams.install()
    link = Link(fd)
    reserve = errors.Reserve()
    packages = None
    if order:
        from guest.environment import Environment  # most containers have the standard library alone

        packages = Environment(order)
    if not (packages and packages.ahead):
        link.send({"type": "warm"})
    fast = FastExit()
    namespace = fresh_main()
    runtime = mcp_runtime.Runtime(link, namespace)
    display = Display(link)
    display.install()
    _import_ahead(link)
    limits.prepare()
    if packages:
        failed = packages.enter()
        if packages.ahead:
            link.send({"type": "warm", "failed": failed})
    surroundings()
    # Objects made so far count as old then, and the first collections of the code pass them over:
    # 7 ms of a warm call's p50.
    gc.freeze()
    gc.unfreeze()
    frame = link.first()
    gc.enable()
    status, options, kept = 1, frame["options"], frame.get("type") == "spare"
    try:
        if not kept:
            runtime.install(frame)
            display.limit = options.get("maxArtifactBytes") or 0
        (packages.limit if packages else limits.apply)(*limits.of(options))
    except Exception as e:
        kind = type(e).__name__
        told = f"the guest could not prepare the run: {kind}: {e}"
        link.send({"type": "claim", "error": {"code": "internal_error", "type": kind, "message": told}})
        leave(status, display, fast)
    if kept:
        from guest.repeat import Repeat

        Repeat(link, namespace, runtime, display, packages, reserve).serve(frame)
    if packages:
        atexit.register(packages.report, link)
    try:
        if file := str(frame.get("file") or ""):
            wire.USER_FILE, sys.argv[0] = file, file
        execute.run(str(frame.get("code")), namespace, packages)
        status = 0
    except SystemExit as e:
        status = exit_status(e.code)
    except BaseException as e:
        reserve.release()
        link.send({"type": "claim", "error": errors.told(e, namespace)})
        leave(status, display, fast, GRACE)
    leave(status, display, fast)


def fresh_main() -> dict[str, Any]:
    """The names of the code's module __main__."""
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    return main.__dict__


def surroundings() -> None:
    """Sets the working directory, HOME and what a script finds in sys."""
    if os.path.isdir(HOME):
        os.chdir(HOME)
        os.environ["HOME"] = HOME
        try:
            os.makedirs(OUT, exist_ok=True)
        except OSError:  # no place of the engine's to write to: nothing can be left there then
            pass
    sys.path.insert(0, "")
    sys.argv[:] = [wire.USER_FILE]


def exit_status(code: object) -> int:
    """What an interpreter exits with for the code of a SystemExit; a text is printed as it would be."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def leave(status: int, display: Display, fast: FastExit, grace: float = 0.0) -> None:
    """Ends the process as an interpreter would: threads, open figures, exit handlers, output.

    Figures come before the handlers, since one of pyplot's closes them. A grace is the seconds that
    threads have: the error of code that failed is reported, whatever still runs.
    """

    def end(number: int = 0, frame: object = None) -> None:
        if number:
            named = ", ".join(running()[:MAX_NAMED])
            print(f"[still running {grace:g} s after the error, and ended: {named}]", file=sys.stderr)
        elif grace:
            signal.setitimer(signal.ITIMER_REAL, 0)
        variables = None if status else report_variables
        each(display.finish, getattr(atexit, "_run_exitfuncs", None), variables)
        streams.flush()
        fast.prepare()
        _exit(status)

    if grace and running():
        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, grace)
    each(report_unawaited, getattr(threading, "_shutdown", None))
    end()


def running() -> list[str]:
    """The names of the other threads that are no daemons."""
    try:
        others = (one for one in threading.enumerate() if one is not threading.current_thread())
        return [one.name for one in others if not one.daemon]
    except Exception:  # the code has put something else in the place of one of these
        return []


def _import_ahead(link: Link) -> None:
    """Imports what much code needs until an execute comes."""
    poller = select.poll()
    poller.register(link.fd, select.POLLIN)
    patience = STANDBY
    for name in AHEAD:
        if link.has_more() or poller.poll(patience):
            return
        try:
            __import__(name)
        except ImportError:  # a Python without ssl, say
            pass
        patience = 0

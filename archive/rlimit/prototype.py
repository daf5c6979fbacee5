"""The second of mcp-bridge's retired prototypes: the code runs in a child process that is held by resource limits alone.

It has all that setrlimit can give: address space, CPU time, file size, descriptors, processes; a session of its own, a
clean environment, a scratch directory, and a deadline after which its process group is killed. demo.py shows what that
could not stop. Standard library only.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one run may use. Seconds are of the clock for `timeout`, of the processor for `cpu`."""

    memory: int = 256 << 20  # bytes of address space, of each process
    cpu: int = 5
    file_size: int = 1 << 20  # bytes of each file
    descriptors: int = 64
    processes: int = 64  # of the user, not of the run
    timeout: float = 10.0


@dataclass(frozen=True)
class Result:
    output: str
    status: int  # negative: the signal


def run(code: str, limits: Limits) -> Result:
    """Runs code in a child python3 and returns what it printed once it ended or its time was up."""

    def confine() -> None:
        for what, limit in (
            (resource.RLIMIT_AS, limits.memory),
            (resource.RLIMIT_CPU, limits.cpu),
            (resource.RLIMIT_FSIZE, limits.file_size),
            (resource.RLIMIT_NOFILE, limits.descriptors),
            (resource.RLIMIT_NPROC, limits.processes),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(what, (limit, limit))

    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            [sys.executable, "-I", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=scratch,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            start_new_session=True,
            preexec_fn=confine,
        )
        try:
            child.wait(limits.timeout)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        status = child.wait()
        output.seek(0)
        return Result(output.read().decode(errors="replace"), status)

"""Limits that the guest sets itself, and those that it watches."""

from __future__ import annotations

import os
import platform
import struct
import unittest

from guest import confine
from guest_tests.host import Guest, run

MIB = 1 << 20


class Rlimits(unittest.TestCase):
    def test_set_before_any_code(self) -> None:
        code = "import resource as r\nprint([r.getrlimit(n) for n in (r.RLIMIT_NOFILE, r.RLIMIT_FSIZE, r.RLIMIT_CORE)])"
        ran = run(code, rlimits={"nofile": 200, "fsize": 4096})
        self.assertEqual(ran.stdout, "[(200, 200), (4096, 4096), (0, 0)]\n")

    def test_core_is_always_0(self) -> None:
        ran = run("import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))", rlimits={"core": 1 << 30})
        self.assertEqual(ran.stdout, "(0, 0)\n")

    def test_a_limit_that_there_is_not(self) -> None:
        ran = run("print('never')", rlimits={"heads": 1})
        self.assertEqual((ran.error["code"], ran.stdout), ("internal_error", ""))
        self.assertIn("'heads'", ran.error["message"])

    def test_memory_error(self) -> None:
        for code in (
            "x = bytearray(1 << 30)",
            "x = []\nwhile True: x.append(bytearray(100_000))",
            "x = []\nwhile True: x.append([len(x)] * 10)",
            "x = {}\ndef f(n):\n    while True: x[len(x)] = str(len(x)) * 50\nf(1)",
            "import asyncio\nawait asyncio.sleep(0)\nx = []\nwhile True: x.append('y' * 1000 + str(len(x)))",
        ):
            with self.subTest(code):
                ran = run("print('begun')\n" + code, rlimits={"as": 64 * MIB})
                self.assertEqual((ran.error.get("type"), ran.stdout), ("MemoryError", "begun\n"), ran.done)
                self.assertEqual(ran.wait, {"exited": True, "status": 1})
                self.assertGreater(ran.error.get("line", 2), 1)  # too little may be left for a line

    def test_threads_have_room_under_it(self) -> None:
        ran = run(
            "import threading, time\n"
            "ts = [threading.Thread(target=lambda: ([object() for _ in range(1000)], time.sleep(0.3))) for _ in range(50)]\n"
            "for t in ts: t.start()\n"
            "print('started')",
            rlimits={"as": 256 * MIB},
        )
        self.assertEqual((ran.ok, ran.stdout), (True, "started\n"), ran.error)

    def test_memory_error_that_is_caught(self) -> None:
        ran = run("try: bytearray(1 << 30)\nexcept MemoryError: print('caught')", rlimits={"as": 64 * MIB})
        self.assertEqual((ran.ok, ran.stdout), (True, "caught\n"))


class Watching(unittest.TestCase):
    def test_memory(self) -> None:
        ran = run("import time\nprint('begun')\nx = b'y' * (200 << 20)\ntime.sleep(1000)", watch={"memoryBytes": 100 * MIB})
        self.assertEqual(ran.wait, {"exited": False, "status": 0, "signal": 9, "killed": "memory"})
        self.assertEqual((ran.error["code"], ran.stdout), ("memory_limit", "begun\n"))

    def test_memory_of_all_together(self) -> None:
        code = (
            "import os, time\n"
            "for _ in range(3):\n"
            "    if os.fork() == 0:\n"
            "        x = b'y' * (50 << 20)\n"
            "        time.sleep(1000)\n"
            "time.sleep(1000)"
        )
        self.assertEqual(run(code, watch={"memoryBytes": 120 * MIB}).wait["killed"], "memory")

    def test_shared_pages_count_once(self) -> None:
        code = (
            "import os, time\nx = b'y' * (60 << 20)\nfor _ in range(3):\n"
            "    if os.fork() == 0:\n        time.sleep(0.5)\n        os._exit(0)\n"
            "time.sleep(0.6)"
        )
        self.assertTrue(run(code, watch={"memoryBytes": 150 * MIB}).ok)

    def test_processes(self) -> None:
        for code in (
            "import os, time\nwhile os.fork(): time.sleep(0.001)\ntime.sleep(1000)",
            "import threading as t, time\nwhile 1:\n    t.Thread(target=time.sleep, args=(1000,)).start()\n    time.sleep(0.001)",
        ):
            with self.subTest(code):
                ran = run(code, watch={"processes": 20})
                self.assertEqual((ran.wait["killed"], ran.error["code"]), ("processes", "runtime_error"))


class Confinement(unittest.TestCase):
    def test_programs(self) -> None:
        for machine, arch, denied, allowed in (
            ("x86_64", 0xC000003E, (101, 165, 272, 321, 425), (0, 1, 39, 56, 202)),
            ("aarch64", 0xC00000B7, (117, 40, 97, 280, 425), (63, 64, 172, 220, 98)),
        ):
            program = confine.program(machine)
            assert program is not None
            for call in denied:
                self.assertEqual(decide(program, arch, call), confine.ERRNO | confine.EPERM, (machine, call))
            for call in allowed:
                self.assertEqual(decide(program, arch, call), confine.ALLOW, (machine, call))
            clone, socket = (56, 41) if machine == "x86_64" else (220, 198)
            self.assertEqual(decide(program, arch, clone, 0x10000011), confine.ERRNO | confine.EPERM)
            self.assertEqual(decide(program, arch, clone, 0x003D0F00), confine.ALLOW)  # a thread
            self.assertEqual(decide(program, arch, socket, 40), confine.ERRNO | confine.EPERM)
            self.assertEqual(decide(program, arch, socket, 1), confine.ALLOW)
            self.assertEqual(decide(program, arch, 435), confine.ERRNO | confine.ENOSYS)
            self.assertEqual(decide(program, 0x40000003, 1), confine.KILL)  # i386
        self.assertIsNone(confine.program("vax"))

    def test_x32_is_no_way_around(self) -> None:
        program = confine.program("x86_64")
        assert program is not None
        self.assertEqual(decide(program, 0xC000003E, 0x40000000 | 101), confine.KILL)

    @unittest.skipUnless(platform.machine() == "x86_64" and os.name == "posix", "uses numbers of x86_64")
    def test_in_force(self) -> None:
        code = (
            "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
            "calls = dict.fromkeys((101, 165, 250, 298, 310, 321, 323, 425), 1) | {272: 0x10000000, 56: 0x10000011}\n"
            "for call, arg in calls.items():\n"
            "    ctypes.set_errno(0)\n"
            "    print(c.syscall(call, arg, 0, 0, 0, 0), ctypes.get_errno())\n"
            "import subprocess, threading\n"
            "t = threading.Thread(target=print, args=['thread']); t.start(); t.join()\n"
            "x = subprocess.run(['grep', '^Seccomp:', '/proc/self/status'])"
        )
        ran = run(code)
        self.assertEqual(ran.stdout, "-1 1\n" * 10 + "thread\nSeccomp:\t2\n")
        self.assertIs(ran.frames[0]["seccomp"], True)

    def test_an_image_without_ctypes_is_told(self) -> None:
        with Guest({"confine": ("import ctypes", "import no_ctypes")}) as guest:
            guest.execute("print(1)")
            ready, started, *_, done = guest.until("done")
            for frame in (ready, started):
                self.assertIs(frame["seccomp"], False)
                self.assertIn("no ctypes", frame["note"])
            self.assertTrue(done["ok"])


def decide(program: bytes, arch: int, call: int, arg: int = 0) -> int:
    """Runs the filter as the kernel does, as far as it uses the machine."""
    code = [struct.unpack_from("=HBBI", program, i) for i in range(0, len(program), 8)]
    data = {0: call, 4: arch, 16: arg}
    value = at = 0
    while True:
        op, yes, no, k = code[at]
        at += 1
        if op == 0x20:
            value = data[k]
        elif op == 0x06:
            return int(k)
        else:
            held = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[op]
            at += yes if held else no

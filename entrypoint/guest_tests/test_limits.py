"""Limits that the guest sets itself, and those that it watches."""

from __future__ import annotations

import os
import platform
import struct
import tempfile
import unittest
import unittest.mock

from guest import confine, watch
from guest_tests.host import ENDS_THREAD, Guest, Ran, run

MIB = 1 << 20


class Rlimits(unittest.TestCase):
    def test_set_before_any_code(self) -> None:
        code = (
            "import resource as r\n"
            "print([r.getrlimit(n) for n in (r.RLIMIT_NOFILE, r.RLIMIT_FSIZE, r.RLIMIT_CORE)])"
        )
        ran = run(code, rlimits={"nofile": 200, "fsize": 4096})
        self.assertEqual(ran.stdout, "[(200, 200), (4096, 4096), (0, 0)]\n")

    def test_core_is_always_0(self) -> None:
        ran = run(
            "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))", rlimits={"core": 1 << 30}
        )
        self.assertEqual(ran.stdout, "(0, 0)\n")

    def test_nothing_can_be_locked_in_memory(self) -> None:
        code = "import resource\nprint(resource.getrlimit(resource.RLIMIT_MEMLOCK))"
        for rlimits in ({}, {"memlock": 1 << 20}):
            self.assertEqual(run(code, rlimits=rlimits).stdout, "(0, 0)\n")

    def test_no_message_queues(self) -> None:
        code = "import resource\nprint(resource.getrlimit(12))"  # RLIMIT_MSGQUEUE
        self.assertEqual(run(code, rlimits={"msgqueue": 1 << 20}).stdout, "(0, 0)\n")

    def test_no_limit_can_be_raised(self) -> None:
        code = (
            "import resource as r\nraised = []\n"
            "for n in (r.RLIMIT_NOFILE, r.RLIMIT_NPROC, r.RLIMIT_CORE, r.RLIMIT_MEMLOCK, r.RLIMIT_MSGQUEUE, "
            "r.RLIMIT_AS):\n"
            "    for limits in ((1 << 40, 1 << 40), (-1, -1)):\n"
            "        try: r.setrlimit(n, limits); raised.append(n)\n"
            "        except (ValueError, OSError): pass\nprint(raised)"
        )
        ran = run(code, rlimits={"nofile": 200, "nproc": 5000, "as": 256 * MIB})
        self.assertEqual(ran.stdout, "[]\n" if os.geteuid() or os.environ.get("GUEST_UNDER") else ran.stdout)

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "there is one core only")
    def test_cores(self) -> None:
        code = (
            "import os, subprocess, sys, threading\n"
            "print(len(os.sched_getaffinity(0)))\n"
            "def free():\n"
            "    for pid in (0, os.getpid(), threading.get_native_id()):\n"
            "        try: os.sched_setaffinity(pid, range(os.cpu_count())); print('free')\n"
            "        except PermissionError: pass\n"
            "    print(len(os.sched_getaffinity(0)))\n"
            "t = threading.Thread(target=free); t.start(); t.join(); free(); sys.stdout.flush()\n"
            "_ = subprocess.run([sys.executable, '-c', 'import os; print(len(os.sched_getaffinity(0)))'])"
        )
        self.assertEqual(run(code, cores=1).stdout, "1\n" * 4)

    def test_more_cores_than_there_are(self) -> None:
        code = (
            "import os\nos.sched_setaffinity(0, os.sched_getaffinity(0))\nprint(len(os.sched_getaffinity(0)))"
        )
        self.assertEqual(run(code, cores=4096).stdout, f"{len(os.sched_getaffinity(0))}\n")

    def test_too_many_files_are_told(self) -> None:
        ran = run(
            "import os\nheld = []\nwhile True: held.append(os.open('/dev/null', os.O_RDONLY))",
            rlimits={"nofile": 100},
        )
        self.assertEqual(ran.error["type"], "OSError")
        self.assertIn("a process may have 100 files", ran.error["message"])

    @unittest.skipUnless(os.environ.get("GUEST_UNDER"), "the tmpfs mounts are a container's")
    def test_a_full_directory_is_told(self) -> None:
        ran = run("f = open('/workspace/f', 'wb')\nwhile True: f.write(bytes(1 << 20))")
        self.assertIn("/workspace is full, with 64 MiB", ran.error["message"])

    def test_a_limit_that_there_is_not(self) -> None:
        ran = run("print('never')", rlimits={"heads": 1})
        self.assertEqual((ran.error["code"], ran.stdout), ("internal_error", ""))
        self.assertIn("RLIMIT_HEADS", ran.error["message"])

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
            "ts = [threading.Thread(target=lambda: ([object() for _ in range(1000)], time.sleep(0.3))) for "
            "_ in range(50)]\n"
            "for t in ts: t.start()\nprint('started')",
            rlimits={"as": 256 * MIB},
        )
        self.assertEqual((ran.ok, ran.stdout), (True, "started\n"), ran.error)

    def test_memory_error_that_is_caught(self) -> None:
        ran = run("try: bytearray(1 << 30)\nexcept MemoryError: print('caught')", rlimits={"as": 64 * MIB})
        self.assertEqual((ran.ok, ran.stdout), (True, "caught\n"))


class Watching(unittest.TestCase):
    def test_memory(self) -> None:
        ran = run(
            "import time\nprint('begun')\nx = b'y' * (200 << 20)\ntime.sleep(1000)",
            watch={"memoryBytes": 100 * MIB},
        )
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

    def test_memory_of_a_process_whose_first_thread_has_ended(self) -> None:
        """It is a zombie by its state, of which the kernel tells no memory."""
        code = (
            "import threading, time\n"
            "def take():\n"
            "    while ') Z' not in open('/proc/self/stat').read(): time.sleep(0.01)\n"
            "    x = b'y' * (200 << 20)\n    time.sleep(1000)\n"
            f"threading.Thread(target=take).start()\n{ENDS_THREAD}"
        )
        self.assertEqual(run(code, watch={"memoryBytes": 100 * MIB}).wait["killed"], "memory")

    def test_shared_pages_count_once(self) -> None:
        code = (
            "import os, time\nx = b'y' * (60 << 20)\nfor _ in range(3):\n"
            "    if os.fork() == 0:\n        time.sleep(0.5)\n        os._exit(0)\n"
            "time.sleep(0.6)"
        )
        self.assertTrue(run(code, watch={"memoryBytes": 150 * MIB}).ok)

    @unittest.skipUnless(os.environ.get("GUEST_UNDER"), "the tmpfs mounts are a container's")
    def test_files_in_tmpfs(self) -> None:
        fill = (
            "import time\n"
            "for d in ('/tmp', '/workspace', '/dev/shm'): open(d + '/f', 'wb').write(bytes(40 << 20))\n"
        )
        ran = run(fill + "time.sleep(1000)", watch={"memoryBytes": 100 * MIB})
        self.assertEqual(ran.wait.get("killed"), "memory")
        self.assertTrue(run(fill + "time.sleep(0.5)", watch={"memoryBytes": 250 * MIB}).ok)

    @unittest.skipUnless(os.environ.get("GUEST_UNDER"), "the tmpfs mounts are a container's")
    def test_empty_files_in_tmpfs(self) -> None:
        ran = run(
            "import os, time\nfor n in range(150_000): os.symlink('x' * 100, f'/tmp/{n}')\ntime.sleep(1000)",
            watch={"memoryBytes": 100 * MIB},
        )
        self.assertEqual(ran.wait.get("killed"), "memory")

    @unittest.skipUnless(os.environ.get("GUEST_UNDER"), "the tmpfs mounts are a container's")
    def test_mapped_files_of_tmpfs_count_once(self) -> None:
        code = (
            "from multiprocessing import shared_memory\nimport time\n"
            "m = shared_memory.SharedMemory(create=True, size=55 << 20)\nm.buf[:] = bytes(55 << 20)\n"
            "time.sleep(%s)\nm.close(); m.unlink()"
        )
        ran = run(code % 0.5, watch={"memoryBytes": 180 * MIB})
        self.assertTrue(ran.ok, ran.error)
        self.assertEqual(run(code % 1000, watch={"memoryBytes": 60 * MIB}).wait.get("killed"), "memory")

    def test_a_crowd_is_counted_before_it_is_looked_at(self) -> None:
        bounded = watch.Watch(0, 20, None)
        with (
            unittest.mock.patch.object(watch.Watch, "_members", return_value=[str(n) for n in range(21)]),
            unittest.mock.patch.object(watch, "read", side_effect=AssertionError("it takes too long")),
        ):
            self.assertEqual(bounded.exceeded(), ("processes", ""))

    def test_what_is_resident(self) -> None:
        self.assertEqual(watch._resident({"RssAnon": 2, "RssShmem": 1, "RssFile": 50, "VmRSS": 53}), 3 << 10)
        self.assertEqual(watch._resident({"VmRSS": 53}), 53 << 10)  # gVisor's
        self.assertEqual(watch._resident({}), 0)

    def test_some_fields(self) -> None:
        text = "RssAnon:\t 8 kB\nxVmRSS:\t5 kB\nVmRSS:\t 12 kB\nName:\tVmSwap: 3\nVmSwap:\nThreads:\t7"
        for given in (text, watch.read("/proc/self/status"), ""):
            names = ("RssAnon", "VmRSS", "VmSwap", "Threads", "Name", "Missing")
            want = {name: n for name, n in watch._fields(given).items() if name in names}
            self.assertEqual(watch._some(given, *names), want, given)

    def test_tmpfs_mounts(self) -> None:
        info = (
            "1 0 0:1 / / ro - overlay overlay rw\n"
            "2 1 0:2 / /tmp rw,nosuid - tmpfs tmpfs rw,size=65536k\n"
            "3 1 0:3 / /dev/shm rw shared:3 - tmpfs shm rw\n"
            "4 1 0:4 / /workspace rw - ext4 /dev/vda rw\n"
            "5 1 0:5 / /sys/firmware ro - tmpfs tmpfs ro\n"
        )
        self.assertEqual(watch.tmpfs_mounts(info), ["/tmp", "/dev/shm"])
        self.assertEqual(watch.tmpfs_mounts(""), [])

    def test_what_is_mapped_from_tmpfs(self) -> None:
        maps = (
            "7f00-7f01 rw-s 00000000 00:18 5 /dev/shm/a b (deleted)\nSize: 8 kB\nPss: 4 kB\n"
            "Pss_Dirty: 4 kB\nVmFlags: rd\n7f01-7f02 rw-p 00000000 00:18 5 /dev/shm/private\nPss: 100 kB\n"
            "7f02-7f03 rw-s 00000000 00:01 6 /dev/zero (deleted)\nPss: 1000 kB\n"
            "7f03-7f04 rw-p 00000000 00:00 0 \nPss: 10000 kB\n7f04-7f05 rw-s 00000000 00:18 7 /dev/shm/b\n"
            "Pss: 16 kB\nPss:"
        )
        self.assertEqual(watch._mapped_from(maps, ["/tmp", "/dev/shm"]), 20 << 10)

    def test_the_supervisor_comes_first(self) -> None:
        code = (
            "import os, resource, subprocess, sys\n"
            "def niceness(pid): return os.getpriority(os.PRIO_PROCESS, pid)\n"
            "base = niceness(os.getppid())\n"
            "print(niceness(0) - base, resource.getrlimit(resource.RLIMIT_NICE))\n"
            "ask = 'import os; print(os.getpriority(os.PRIO_PROCESS, 0))'\n"
            "print(int(subprocess.run([sys.executable, '-c', ask], capture_output=True).stdout) - base)\n"
            "for pid in 0, os.getpid():\n"
            "    try: os.setpriority(os.PRIO_PROCESS, pid, base)\n    except OSError: print('for good')"
        )
        bounds: tuple[dict[str, int], ...] = ({"memoryBytes": 500 * MIB}, {"processes": 50})
        more = min(10, 19 - os.getpriority(os.PRIO_PROCESS, 0))
        able = os.geteuid() == 0 and not os.environ.get(
            "GUEST_UNDER"
        )  # root outside of a container has the capability
        for watched in bounds:
            ran = run(code, watch=watched)
            self.assertEqual(
                ran.stdout, f"{more} (0, 0)\n{more}\n" + ("" if able else "for good\n" * 2), ran.error
            )
        for unwatched in ({}, {"memoryBytes": 0, "processes": 0}):
            self.assertEqual(run(code, watch=unwatched).stdout, "0 (0, 0)\n0\n", unwatched)

    def test_what_is_not_resident_counts(self) -> None:
        status = (
            "Threads:\t1\nRssAnon:\t8 kB\nRssShmem:\t4 kB\nVmSwap:\t{swap} kB\nHugetlbPages:\t{huge} kB\n"
        )
        rollup = (
            "Pss_Anon: 8 kB\nPss_Shmem: 4 kB\nSwap: 90000 kB\nSwapPss: {swap} kB\n"
            "Private_Hugetlb: {huge} kB\n"
        )
        for swap, huge, want in (
            (0, 0, ""),
            (0, 2048, "memory"),
            (2048, 0, "memory"),
            (512, 496, ""),
            (512, 512, "memory"),
        ):
            for told in (status, ""), (status, rollup):  # an old kernel has no rollup
                names = "/proc/7/status", "/proc/7/smaps_rollup"
                files = {
                    name: text.format(swap=swap, huge=huge) for name, text in zip(names, told, strict=True)
                }
                with (
                    self.subTest(swap=swap, huge=huge, rollup=told[1] != ""),
                    unittest.mock.patch.object(watch.Watch, "_members", return_value=["7"]),
                    unittest.mock.patch.object(
                        watch, "read", side_effect=lambda path, files=files: files.get(path, "")
                    ),
                ):
                    self.assertEqual(watch.Watch(MIB, 0, 7).exceeded(), (want, ""))

    def test_copies_whose_memory_is_closed_count_once(self) -> None:
        """Process 7 has 900 KiB, of which two copies with closed memory share 600 with it."""
        for size, want in ((600, ""), (800, "memory")):
            files = {f"/proc/{pid}/status": f"Threads:\t1\nRssAnon:\t{size} kB\n" for pid in (8, 9)}
            files["/proc/7/status"] = "Threads:\t1\nRssAnon:\t900 kB\n"
            files["/proc/7/smaps_rollup"] = "Pss_Anon: 500 kB\nShared_Dirty: 600 kB\n"
            with (
                self.subTest(size=size),
                unittest.mock.patch.object(watch.Watch, "_members", return_value=["7", "8", "9"]),
                unittest.mock.patch.object(
                    watch, "read", side_effect=lambda path, files=files: files.get(path, "")
                ),
            ):
                self.assertEqual(watch.Watch(MIB, 0, 7).exceeded(), (want, ""))

    def test_floor(self) -> None:
        for total, available, memory, want in (
            (24_000, 20_000, 512, 1200),  # a twentieth
            (4_000, 3_000, 512, 256),
            (1_000, 700, 512, 188),  # the run may use its 512
            (1_000, 400, 512, 50),
        ):
            machine = {"MemTotal": total << 10, "MemAvailable": available << 10}
            self.assertEqual(watch.floor(memory * MIB, machine), want * MIB)

    def test_the_machine_runs_short(self) -> None:
        short = {"watch": ("self._floor = ", "self._floor = (1 << 50) + ")}
        for bounds, killed, sleep in (
            ({"memoryBytes": 500 * MIB}, "memory", 1000),
            ({"processes": 50}, None, 0.5),
        ):
            with Guest(short) as guest:
                guest.execute(f"import time\ntime.sleep({sleep})", watch=bounds)
                ran = Ran(guest.until("done"))
                self.assertEqual((ran.wait.get("killed"), ran.ok), (killed, killed is None))
                if killed:
                    self.assertIn("the machine had less than", ran.error["message"])

    def test_processes(self) -> None:
        for code in (
            "import os, time\nwhile os.fork(): time.sleep(0.001)\ntime.sleep(1000)",
            "import threading as t, time\nwhile 1:\n    t.Thread(target=time.sleep, args=(1000,)).start()\n"
            "    time.sleep(0.001)",
        ):
            with self.subTest(code):
                ran = run(code, watch={"processes": 20})
                self.assertEqual((ran.wait["killed"], ran.error["code"]), ("processes", "runtime_error"))


DENIED_X86_64 = (
    101, 165, 272, 321, 425, 29, 30, 64, 68, 154, 162, 179, 237, 238, 240, 278, 300, 301, 303, 306, 319,
    443, 447, 450,
)  # fmt: skip
DENIED_AARCH64 = (
    117, 40, 97, 280, 425, 194, 196, 190, 186, 60, 75, 81, 180, 235, 237, 262, 263, 264, 267, 279, 443,
    447, 450,
)  # fmt: skip


class Confinement(unittest.TestCase):
    def test_programs(self) -> None:
        for machine, arch, denied, allowed in (
            ("x86_64", 0xC000003E, DENIED_X86_64, (0, 1, 39, 56, 202, 31, 67)),
            ("aarch64", 0xC00000B7, DENIED_AARCH64, (63, 64, 172, 220, 98, 195, 197)),
        ):
            program = confine.program(machine)
            assert program is not None
            for call in denied:
                self.assertEqual(decide(program, arch, call), confine.ERRNO | confine.EPERM, (machine, call))
            for call in allowed:
                self.assertEqual(decide(program, arch, call), confine.ALLOW, (machine, call))
            clone, socket, socketpair = (56, 41, 53) if machine == "x86_64" else (220, 198, 199)
            denied_now = confine.ERRNO | confine.EPERM
            # prlimit64, sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr
            for call in (302, 142, 144, 203, 314) if machine == "x86_64" else (261, 118, 119, 122, 274):
                for pid, want in ((0, confine.ALLOW), (1, denied_now), (2, confine.ALLOW)):
                    self.assertEqual(decide(program, arch, call, pid), want, (machine, call, pid))
            # setpriority, ioprio_set: which and who
            for call, single in ((141, 0), (251, 1)) if machine == "x86_64" else ((140, 0), (30, 1)):
                for which in range(4):
                    for who in range(3):
                        want = confine.ALLOW if which == single and who != 1 else denied_now
                        self.assertEqual(
                            decide(program, arch, call, which, who), want, (machine, call, which, who)
                        )
            for family in range(50):
                want = confine.ALLOW if family in (1, 2, 10, 16) else denied_now
                self.assertEqual(decide(program, arch, socket, family), want, (machine, family))
                self.assertEqual(decide(program, arch, socketpair, family), want, (machine, family))
            self.assertEqual(decide(program, arch, clone, 0x10000011), confine.ERRNO | confine.EPERM)
            self.assertEqual(decide(program, arch, clone, 0x003D0F00), confine.ALLOW)  # a thread
            for protocol in (4, 9, 12, 21):  # of netlink
                self.assertEqual(
                    decide(program, arch, socket, 16, 3, protocol), confine.ERRNO | confine.EPERM
                )
            only = confine.cores_program(machine)
            assert only
            self.assertEqual(
                decide(only, arch, 203 if machine == "x86_64" else 122), confine.ERRNO | confine.EPERM
            )
            self.assertEqual(decide(only, arch, socket, 40), confine.ALLOW)
            self.assertEqual(decide(program, arch, socket, 40), confine.ERRNO | confine.EPERM)
            self.assertEqual(decide(program, arch, socket, 1), confine.ALLOW)
            self.assertEqual(decide(program, arch, 435), confine.ERRNO | confine.ENOSYS)
            self.assertEqual(decide(program, 0x40000003, 1), confine.KILL)  # i386
        self.assertIsNone(confine.program("vax"))

    def test_no_internet(self) -> None:
        for machine, arch, socket in (("x86_64", 0xC000003E, 41), ("aarch64", 0xC00000B7, 198)):
            program = confine.program(machine, internet=False)
            assert program is not None
            for family in range(50):
                want = confine.ALLOW if family in (1, 16) else confine.ERRNO | confine.EPERM
                self.assertEqual(decide(program, arch, socket, family), want, (machine, family))
            for protocol in (4, 9, 12, 21):  # of netlink
                self.assertEqual(
                    decide(program, arch, socket, 16, 3, protocol), confine.ERRNO | confine.EPERM
                )

    def test_interfaces(self) -> None:
        head = "Inter-|   Receive\n face |bytes    packets\n"
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "dev")
            for lines, alone in (
                ("    lo: 0 0\n", True),
                ("    lo: 0 0\n tunl0: 0 0\n", True),
                ("    lo: 0 0\n  eth0: 7 1\n", False),
            ):
                with open(path, "w", encoding="ascii") as file:
                    file.write(head + lines)
                self.assertEqual(confine.alone(path), alone, lines)
            self.assertFalse(confine.alone(path + "-missing"))

    def test_x32_is_no_way_around(self) -> None:
        program = confine.program("x86_64")
        assert program is not None
        self.assertEqual(decide(program, 0xC000003E, 0x40000000 | 101), confine.KILL)

    @unittest.skipUnless(platform.machine() == "x86_64" and os.name == "posix", "uses numbers of x86_64")
    def test_in_force(self) -> None:
        code = (
            "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
            "calls = dict.fromkeys((101, 165, 250, 298, 310, 321, 323, 425), 1) | {272: 0x10000000, 56: "
            "0x10000011}\n"
            "for call, arg in calls.items():\n    ctypes.set_errno(0)\n"
            "    print(c.syscall(call, arg, 0, 0, 0, 0), ctypes.get_errno())\nimport subprocess, threading\n"
            "t = threading.Thread(target=print, args=['thread']); t.start(); t.join()\n"
            "x = subprocess.run(['grep', '^Seccomp:', '/proc/self/status'])"
        )
        ran = run(code)
        self.assertEqual(ran.stdout, "-1 1\n" * 10 + "thread\nSeccomp:\t2\n")
        self.assertIs(ran.frames[0]["seccomp"], True)

    def test_the_supervisor_is_left_alone(self) -> None:
        code = (
            "import os, resource\ndef own(pid):\n"
            "    return [lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)), lambda: "
            "resource.prlimit(pid, 7),\n"
            "        lambda: os.sched_setscheduler(pid, 0, os.sched_param(0)),\n"
            "        lambda: os.sched_setparam(pid, os.sched_param(0)),\n"
            "        lambda: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(0, 0))]\ndenied = 0\n"
            "for call in own(1) + [lambda: os.setpriority(os.PRIO_PGRP, 0, 19), lambda: "
            "os.setpriority(os.PRIO_USER, 0, 19)]:\n"
            "    try: call()\n    except PermissionError: denied += 1\n"
            "for call in own(0) + own(os.getpid()): call()\nprint(denied, os.nice(1) > 0)"
        )
        ran = run(code)
        self.assertEqual(ran.stdout, "7 True\n", ran.error)

    def test_no_memory_that_nothing_counts(self) -> None:
        code = (
            "import ctypes, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            "try: print(os.memfd_create('x'))\nexcept PermissionError: print('memfd')\n"
            "for name, args in ('shmget', (0, 4096, 0)), ('semget', (0, 1, 0)), ('msgget', (0, 0)):\n"
            "    print(getattr(libc, name)(*args), ctypes.get_errno())\n"
            "for family, protocol in (17, 0), (38, 0), (40, 0), (16, 4), (16, 9), (16, 12), (16, 21):\n"
            "    try: socket.socket(family, socket.SOCK_RAW, protocol)\n"
            "    except PermissionError: print(family, protocol)\n"
            "_ = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"
        )
        families = "17 0\n38 0\n40 0\n16 4\n16 9\n16 12\n16 21\n"
        ran = run(code)
        self.assertEqual((ran.stdout, ran.ok), ("memfd\n" + "-1 1\n" * 3 + families, True), ran.error)

    def test_modules_of_python_work(self) -> None:
        code = (
            "import asyncio, ctypes, multiprocessing as mp, os, socket, subprocess, sys, tempfile, "
            "threading\n"
            "from concurrent.futures import ProcessPoolExecutor\nfrom multiprocessing import shared_memory\n"
            "fork = mp.get_context('fork')\nm = shared_memory.SharedMemory(create=True, size=4096)\n"
            "def put(q, v, e, a):\n    with v.get_lock(): v.value += 1\n"
            "    m.buf[0] = 7; a[0] = 5; q.put('queue'); e.set()\n"
            "q, v, e, a = fork.Queue(), fork.Value('i', 1), fork.Event(), fork.Array('d', 100)\n"
            "p = fork.Process(target=put, args=(q, v, e, a)); p.start(); print(q.get(), e.wait(5)); "
            "p.join()\n"
            "print(v.value, m.buf[0], a[0], p.exitcode); m.close(); m.unlink()\n"
            "with fork.Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
            "with ProcessPoolExecutor(2, mp_context=mp.get_context('spawn')) as pool: "
            "print(list(pool.map(abs, [-3])))\n"
            "with mp.get_context('forkserver').Manager() as manager: print(manager.dict(a=1).copy())\n"
            "async def main():\n    p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\n"
            "    print((await p.communicate(b'cat'))[0])\n"
            "    async def echo(r, w): w.write(await r.read(4)); w.close()\n"
            "    s = await asyncio.start_unix_server(echo, path := tempfile.mktemp())\n"
            "    r, w = await asyncio.open_unix_connection(path); w.write(b'unix'); print(await r.read(4))\n"
            "    w.close(); s.close()\n    s = await asyncio.start_server(echo, '127.0.0.1', 0)\n"
            "    r, w = await asyncio.open_connection(*s.sockets[0].getsockname())\n"
            "    w.write(b'inet'); print(await r.read(4)); w.close(); s.close()\nasyncio.run(main())\n"
            "a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(4))\n"
            "print(subprocess.run(['echo', 'sh'], capture_output=True, preexec_fn=lambda: "
            "os.nice(2)).stdout)\n"
            "f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n: n + 1)\n"
            "print(f(1), os.cpu_count() > 0, len(socket.if_nameindex()) > 0)"
        )
        ran = run(code)
        want = (
            "queue True\n2 7 5.0 0\n[1, 2]\n[3]\n{'a': 1}\nb'cat'\nb'unix'\nb'inet'\nb'pair'\nb'sh\\n'\n"
            "2 True True\n"
        )
        self.assertEqual((ran.stdout, ran.ok), (want, True), (ran.error, ran.stderr))

    def test_an_engine_without_its_profile_is_told(self) -> None:
        changed = {"confine": ("os.getpid() == SUPERVISOR and _unfiltered()", "True")}
        for change, note in ((changed, confine.ENGINE_OFF), (None, None)):
            with Guest(change) as guest:
                guest.execute("pass")
                ready = guest.until("done")[0]
                self.assertEqual((ready["type"], ready["seccomp"], ready.get("note")), ("ready", True, note))

    @unittest.skipUnless("podman run " in os.environ.get("GUEST_UNDER", ""), "needs an engine to ask that of")
    def test_an_engine_without_its_profile(self) -> None:
        under = os.environ["GUEST_UNDER"].replace(
            "podman run ", "podman run --security-opt seccomp=unconfined ", 1
        )
        with unittest.mock.patch.dict(os.environ, {"GUEST_UNDER": under}):
            ran = run("pass")
        self.assertEqual(ran.frames[0].get("note"), confine.ENGINE_OFF)

    def test_an_image_without_ctypes_is_told(self) -> None:
        with Guest({"confine": ("import ctypes", "import no_ctypes")}) as guest:
            guest.execute("print(1)")
            ready, *_, done = guest.until("done")
            self.assertIs(ready["seccomp"], False)
            self.assertIn("no ctypes", ready["note"])
            self.assertTrue(done["ok"])


def decide(program: bytes, arch: int, call: int, arg: int = 0, second: int = 0, third: int = 0) -> int:
    """Runs the filter as the kernel does, as far as it uses the machine."""
    code = [struct.unpack_from("=HBBI", program, i) for i in range(0, len(program), 8)]
    data = {0: call, 4: arch, 16: arg, 24: second, 32: third}
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

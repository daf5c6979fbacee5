"""Packages that the image has for the code: where they are found, and imports ahead."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

from guest_tests.host import Frame, Guest, Ran, run

MIB = 1 << 20


@unittest.skipIf(os.environ.get("GUEST_UNDER"), "the container has no folder of this machine")
class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)
        self.folder.chmod(0o755)

    def module(self, name: str, text: str = "") -> None:
        path = self.folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def order(self, *imports: str, **limits: Any) -> Frame:
        return {"path": str(self.folder), **({"imports": list(imports)} if imports else {}), **limits}

    def run_in(self, code: str, *imports: str, **options: Any) -> Ran:
        return run(code, order=self.order(*imports), **options)


class Environment(InFolder):
    def test_the_folder_comes_behind_the_standard_library(self) -> None:
        self.module("json", "raise SystemExit(3)")
        self.module("numbers_of_ours", "value = 7")
        ran = self.run_in("import json, numbers_of_ours, sys\nprint(numbers_of_ours.value, json.dumps([1]))")
        self.assertEqual((ran.stdout, ran.error), ("7 [1]\n", {}))

    def test_it_comes_before_what_the_image_has(self) -> None:
        ran = self.run_in(
            "import sys\nends = ['site' if p.endswith('-packages') else p for p in sys.path]\n"
            f"at = ends.index({str(self.folder)!r})\n"
            "own = any(p.endswith('lib-dynload') for p in ends[at:])\n"
            "print(at > 1 and 'site' not in ends[:at] and not own)"
        )
        self.assertEqual(ran.stdout, "True\n")

    def test_without_an_order_there_is_none(self) -> None:
        self.module("numbers_of_ours")
        self.assertEqual(run("import numbers_of_ours").error["type"], "ModuleNotFoundError")

    def test_only_the_child_has_it(self) -> None:
        for name in ("sitecustomize", "usercustomize"):
            self.module(name, "import os\nos.write(2, b'imported')")
        self.module("a")
        (self.folder / "a.pth").write_text("import os; os.write(2, b'imported')\n", encoding="utf-8")
        loop = "        try:\n            while True:\n"
        told = (loop, f"        print(sys.path, file=sys.stderr)\n{loop}")
        for ahead in ([], ["a"]):
            with Guest({"loop": told}, order=self.order(*ahead)) as guest:
                guest.execute("import a, sys\nprint(a.__file__.rpartition('/')[0] in sys.path)")
                ran = Ran(guest.until("done"))
                self.assertEqual((ran.stdout, ran.stderr), ("True\n", ""))
                self.assertEqual(guest.status(), 0)
                supervisor = guest.errors()
                self.assertIn("/lib/python3", supervisor)
                self.assertNotIn(str(self.folder), supervisor)
                self.assertNotIn("imported", supervisor)

    def test_ahead(self) -> None:
        self.module("slow", "import time\ntime.sleep(0.2)\nmade = time.monotonic()")
        with Guest(order=self.order("slow")) as guest:
            self.assertNotIn("failed", guest.until("ready")[-1])
            guest.execute("import time\nbegan = time.monotonic()\nimport slow\nprint(slow.made < began)")
            self.assertEqual(Ran(guest.until("done")).stdout, "True\n")

    def test_failures_ahead_are_silent(self) -> None:
        self.module("raises", "print('heard')\nraise SystemExit(3)")
        self.module("loud", "import os, sys\nos.write(1, b'x' * (1 << 20))\nprint('heard', file=sys.stderr)")
        with Guest(order=self.order("raises", "nowhere", "loud")) as guest:
            self.assertEqual(guest.until("ready")[-1]["failed"], ["raises", "nowhere"])
            guest.execute("import loud\nprint('code')")
            ran = Ran(guest.until("done"))
            self.assertEqual((ran.stdout, ran.stderr), ("code\n", ""))

    def test_a_module_that_ends_the_process_is_told(self) -> None:
        self.module("ends", "import os\nos._exit(5)")
        with Guest(order=self.order("ends")) as guest:
            self.assertEqual((guest.read(), guest.status()), (None, 70))
            self.assertIn("before there was any: exit status 5", guest.errors())

    def test_imports_ahead_have_an_end(self) -> None:
        self.module("slow", "import time\ntime.sleep(0.3)")
        changed = {"environment": ("SECONDS = 5.0", "SECONDS = 0.1")}
        with Guest(changed, order=self.order("slow", "string")) as guest:
            self.assertEqual(guest.until("ready")[-1]["failed"], ["string"])

    def test_what_was_imported_is_reported(self) -> None:
        self.module("pack/__init__")
        self.module("pack/inner")
        self.module("pack/unused", "import deep")
        self.module("deep")
        self.module("one", "import deep")
        for code, ahead, want in (
            ("print(1)", [], None),
            ("import json, one", [], ["one", "deep"]),
            ("import json, one", ["one"], ["one"]),
            ("print(1)", ["one"], None),
            (
                "def f():\n    try:\n        from pack import inner\n    except OSError: pass\nf()",
                [],
                ["pack", "pack.inner"],
            ),
            ("if 0:\n    import one\nelse:\n    import pack.inner as i", [], ["pack.inner", "pack"]),
            ("__import__('one')", [], ["deep", "one"]),
            ("import one\n1/0", [], ["one", "deep"]),
            ("import one, sys\nsys.exit(2)", [], ["one", "deep"]),
            ("import one, os\nos._exit(0)", [], None),
            (
                "import one, sys\nsys.modules['x'] = type('X', (), {'__getattribute__': lambda *_: 1/0})()",
                [],
                None,
            ),
            ("from . import one", [], None),
        ):
            with self.subTest(code, ahead=ahead):
                ran = self.run_in(code, *ahead)
                found = ran.done.get("imported")
                self.assertEqual(sorted(found) if found else found, sorted(want) if want else want, ran.error)

    def test_a_forged_report_is_names_at_the_most(self) -> None:
        for said, want in (
            (["a"] * 33, None),
            ("a", None),
            ({"a": 1}, None),
            (["a", 1, "", "x" * 101, None], ["a"]),
        ):
            with self.subTest(str(said)[:40]):
                code = "import sys\nsys.modules['guest.child'].atexit._clear()\n"
                code += "link = __builtins__.display.__self__._link\n"
                code += f"link.send({{'type': 'imported', 'names': {said!r}}})"
                self.assertEqual(self.run_in(code).done.get("imported"), want)

    def test_figures_of_a_pyplot_that_was_imported_ahead(self) -> None:
        self.module("matplotlib/__init__", "rcParams = {}")
        self.module(
            "matplotlib/pyplot",
            "import matplotlib\nbackend = matplotlib.rcParams['backend']\ndef get_fignums(): return []",
        )
        code = "import matplotlib.pyplot as plt\nprint(plt.backend)"
        for ahead in ([], ["matplotlib.pyplot"]):
            ran = self.run_in(code, *ahead)
            self.assertEqual((ran.stdout, ran.error), ("module://guest.pyplot_backend\n", {}))

    def test_frames_of_packages_are_one_line(self) -> None:
        self.module("pack/__init__", "def deep(n):\n    return deep(n - 1) if n else 1 / 0")
        trace = self.run_in("import pack\npack.deep(3)").error["traceback"]
        self.assertIn(
            "  [4 frames of pack, raised in pack/__init__.py, line 2, in deep]\nZeroDivisionError", trace
        )

    def test_hints_name_what_there_is(self) -> None:
        self.module("numbers_of_ours")
        message = self.run_in("import number_of_ours").error["message"]
        self.assertIn("did you mean numbers_of_ours?", message)


class LimitsAhead(InFolder):
    """What a package does when it is imported ahead has the limits of a run."""

    def test_rlimits_and_niceness(self) -> None:
        self.module(
            "a",
            "import os, resource, threading\nthere = {}\n"
            "def look():\n    there['nice'] = os.getpriority(os.PRIO_PROCESS, 0)\n"
            "    there['files'] = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
            "    there['core'] = resource.getrlimit(resource.RLIMIT_CORE)\n"
            "t = threading.Thread(target=look); t.start(); t.join()",
        )
        limits: dict[str, Any] = {
            "rlimits": {"nofile": 200, "as": 512 * MIB},
            "watch": {"memoryBytes": 500 * MIB},
        }
        with Guest(order=self.order("a", **limits)) as guest:
            guest.execute(
                "import a, os, resource\n"
                "nice, base = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, os.getppid()))\n"
                "print(a.there['files'], a.there['core'], a.there['nice'] == nice == min(19, base + 10),\n"
                "resource.getrlimit(resource.RLIMIT_AS)[0] > 0)",
                **limits,
            )
            self.assertEqual(Ran(guest.until("done")).stdout, "(200, 200) (0, 0) True True\n")

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "there is one core only")
    def test_threads_that_were_made_ahead_keep_to_the_cores(self) -> None:
        self.module(
            "a",
            "import os, queue, threading\nasked, said = queue.Queue(), queue.Queue()\n"
            "def work():\n    asked.get()\n    said.put(len(os.sched_getaffinity(0)))\n"
            "    try: os.sched_setaffinity(0, range(os.cpu_count())); said.put('free')\n"
            "    except PermissionError: said.put('bound')\n"
            "threading.Thread(target=work, daemon=True).start()",
        )
        with Guest(order=self.order("a", cores=1)) as guest:
            guest.execute("import a\na.asked.put(1)\nprint(a.said.get(), a.said.get())", cores=1)
            self.assertEqual(Ran(guest.until("done")).stdout, "1 bound\n")

    def test_memory_and_processes_are_watched(self) -> None:
        self.module("big", "import time\nx = b'y' * (200 << 20)\ntime.sleep(60)")
        self.module(
            "many",
            "import threading, time\ndef wait(): time.sleep(60)\n"
            "for _ in range(60): threading.Thread(target=wait, daemon=True).start()\nwait()",
        )
        for name, watch in (("big", {"memoryBytes": 100 * MIB}), ("many", {"processes": 30})):
            with self.subTest(name), Guest(order=self.order(name, watch=watch)) as guest:
                self.assertEqual((guest.read(), guest.status()), (None, 70))
                self.assertIn("signal 9", guest.errors())


if __name__ == "__main__":
    unittest.main()

"""What is written to descriptors 1 and 2."""

from __future__ import annotations

import os
import unittest

from guest import output
from guest_tests.host import Guest, run


class Output(unittest.TestCase):
    def test_texts(self) -> None:
        for code, stdout, stderr in (
            ("print('a\\n\\n\\n  b')\nprint()", "a\n\n\n  b\n\n", ""),
            ("import sys\nprint('é😀', file=sys.stderr)", "", "é😀\n"),
            ("import os\nfor b in 'é😀'.encode(): os.write(1, bytes([b]))", "é😀", ""),
            ("import os\nos.write(1, b'\\xffa\\xe2\\x82')\npass", "\ufffda\ufffd", ""),
            ("print('\\udc80', '\\x00', '\\r\\n')", "\\udc80 \x00 \r\n\n", ""),
            (
                "import sys\nprint(sys.stdout.encoding, sys.stdout.fileno(), sys.stdout.isatty())",
                "utf-8 1 False\n",
                "",
            ),
            (
                "import sys\nsys.stdout.writelines(['a', 'b'])\nsys.stdout.buffer.write(b'c')\n"
                "sys.stdout.flush()",
                "abc",
                "",
            ),
            ("import os\nos.system('echo out; echo err >&2')", "out\n0\n", "err\n"),
            (
                "import subprocess\nsubprocess.run(['cat'])\n"
                "print(len(subprocess.check_output(['echo', 'x'])))",
                "2\n",
                "",
            ),
            (
                "import sys\ntry: input()\nexcept EOFError: print('end', repr(sys.stdin.read()))",
                "end ''\n",
                "",
            ),
            (
                "import ctypes\nctypes.CDLL(None).puts(b'from C')\nctypes.CDLL(None).fflush(None)",
                "from C\n0\n",
                "",
            ),
            (
                "import warnings\nwarnings.warn('careful')",
                "",
                "<run_python>:2: UserWarning: careful\n  warnings.warn('careful')\n",
            ),
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual((ran.stdout, ran.stderr, ran.error), (stdout, stderr, {}))

    def test_last_expression(self) -> None:
        for code, want in (
            ("1 + 1", "2\n"),
            ("x = 3\nx", "3\n"),
            ("None", ""),
            ("'text'", "'text'\n"),
            ("x = 1", ""),
            ("for x in 'a': x", ""),
            ("import asyncio\nawait asyncio.sleep(0, 'slept')", "'slept'\n"),
            ("1\n2", "2\n"),
            ("", ""),
            ("# only a comment", ""),
            (
                "from __future__ import annotations\ndef f(x: nothing): pass\nf.__annotations__",
                "{'x': 'nothing'}\n",
            ),
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual((ran.stdout, ran.error), (want, {}))

    def test_order(self) -> None:
        ran = run(
            "import fcntl, sys, termios, time\n"
            "def say(text, stream):\n"
            "    print(text, file=stream)\n"
            "    while any(fcntl.ioctl(stream, termios.FIONREAD, bytes(4))): time.sleep(.001)\n"
            "for n in range(5): say(n, sys.stdout); say(-n, sys.stderr)"
        )
        outputs = [frame for frame in ran.frames if frame["type"] == "output"]
        self.assertEqual(
            "".join(frame["text"] for frame in outputs), "".join(f"{n}\n{-n}\n" for n in range(5))
        )

    def test_live(self) -> None:
        with Guest() as guest:
            guest.execute("print('now', end='')\nimport time\ntime.sleep(1000)")
            self.assertEqual(guest.until("output")[-1]["text"], "now")
            guest.send({"type": "cancel", "id": "run-1"})
            guest.until("done")

    def test_five_megabytes_at_once(self) -> None:
        ran = run("print('é' * 2_500_000)")
        self.assertEqual(ran.stdout, "é" * 2_500_000 + "\n")

    def test_the_word_that_code_has_begun_comes_with_what_it_says(self) -> None:
        with Guest(changed={"loop": ("SOON = 0.003", "SOON = 5.0")}) as guest:
            guest.until("ready")
            guest.execute("import time\ntime.sleep(0.3)\nprint(1, flush=True)\ninput()")
            self.assertIn(b'"output"', os.read(guest.process.stdout.fileno(), 1 << 20))  # type: ignore[union-attr]

    def test_frames_are_not_one_a_write(self) -> None:
        ran = run("for n in range(20_000): print(n)")
        self.assertEqual(ran.stdout, "".join(f"{n}\n" for n in range(20_000)))
        self.assertLess(len(ran.frames), 500)


class Resting(unittest.TestCase):
    def setUp(self) -> None:
        self.sent: list[tuple[str, str]] = []
        (out, self.stdout), (err, self.stderr) = os.pipe(), os.pipe()
        for fd in (out, err):
            os.set_blocking(fd, False)
        self.out, self.err = out, err
        self.output = output.Output(out, err, lambda stream, text: self.sent.append((stream, text)))
        for fd in (self.stdout, self.stderr):
            self.addCleanup(os.close, fd)
        self.addCleanup(self.output.finish, 0)

    def test_a_pipe_that_held_little_is_waited_for_again_when_it_has_rested(self) -> None:
        os.write(self.stdout, b"a\n")
        self.output.take(self.out)
        self.assertEqual(self.output.awaited(self.output.rests_until - output.REST), {self.err})
        self.assertEqual(self.output.awaited(self.output.rests_until), {self.out, self.err})

    def test_a_pipe_that_held_much_does_not_rest(self) -> None:
        os.write(self.stdout, b"a" * output.SMALL)
        self.output.take(self.out)
        self.assertEqual(self.output.awaited(0.0), {self.out, self.err})

    def test_what_was_written_meanwhile_comes_before_what_ends_the_rest(self) -> None:
        os.write(self.stdout, b"a\n")
        self.output.take(self.out)
        self.output.awaited(self.output.rests_until - output.REST)
        os.write(self.stdout, b"b\n")
        os.write(self.stderr, b"c\n")
        self.output.take(self.err)
        self.output.flush()
        self.assertEqual(self.sent, [("stdout", "a\nb\n"), ("stderr", "c\n")])

    def test_what_comes_when_nothing_rests_is_read_as_it_woke_up(self) -> None:
        os.write(self.stdout, b"a\n")
        self.output.take(self.out)
        self.output.awaited(self.output.rests_until)
        os.write(self.stderr, b"b\n")
        os.write(self.stdout, b"c\n")  # only now, when the poll has returned for stderr
        self.output.take(self.err)
        self.output.take(self.out)
        self.output.flush()
        self.assertEqual(self.sent, [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\n")])


class Errors(unittest.TestCase):
    def test_told(self) -> None:
        for code, kind, message, line, part in (
            (
                "x = 1\n1/0",
                "ZeroDivisionError",
                "division by zero",
                2,
                'File "<run_python>", line 2, in <module>\n    1/0\n',
            ),
            (
                "import asyncio\nawait asyncio.sleep(0)\nraise ValueError('é')",
                "ValueError",
                "é",
                3,
                "line 3, in <module>",
            ),
            ("class E(Exception):\n    def __str__(self): 1/0\nraise E", "E", None, 3, "line 3"),
            ("raise KeyboardInterrupt", "KeyboardInterrupt", "", 1, "KeyboardInterrupt"),
            ("x = '\\ud800'\nraise ValueError(x)", "ValueError", "\ud800", 2, "ValueError"),
            (
                "import asyncio\nasyncio.run(asyncio.sleep(0))\nawait asyncio.sleep(0)",
                "RuntimeError",
                None,
                2,
                "asyncio/runners.py",
            ),
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual(ran.wait, {"exited": True, "status": 1})
                self.assertEqual(
                    (ran.error["code"], ran.error["type"], ran.error.get("line")),
                    ("runtime_error", kind, line),
                )
                if message is not None:
                    self.assertEqual(ran.error["message"], message)
                self.assertIn(part, ran.error["traceback"])
                self.assertNotIn("<guest>", ran.error["traceback"])
                self.assertEqual(ran.stderr, "")

    def test_source_can_be_asked_for(self) -> None:
        ran = run("import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), end='')")
        self.assertEqual(ran.stdout, "def f():\n    return 1\n", ran.error)

    def test_a_file_of_the_users_own(self) -> None:
        ran = run("import sys\nprint(sys.argv)\n1/0", file="dir/script.py")
        self.assertEqual(ran.stdout, "['dir/script.py']\n", ran.error)
        traceback = str((ran.error or {}).get("traceback"))
        self.assertIn('File "dir/script.py", line 3, in <module>\n    1/0\n', traceback)
        self.assertEqual((ran.error or {}).get("line"), 3)
        ran = run("x = (", file="<string>")
        self.assertIn('File "<string>", line 1\n    x = (\n', str((ran.error or {}).get("traceback")))

    def test_main(self) -> None:
        ran = run(
            "import pickle, sys\nclass A: pass\npickle.loads(pickle.dumps(A()))\n"
            "print(__name__, sys.argv, sys.modules['__main__'].A is A)"
        )
        self.assertEqual(ran.stdout, "__main__ ['<run_python>'] True\n", ran.error)

"""What is shown and handed over beside what is printed."""

from __future__ import annotations

import base64
import json
import os
import struct
import tempfile
import unittest
import zlib
from typing import Any

from guest import artifacts, mime
from guest_tests.host import Frame, Guest, Ran, run


def png(width: int = 1, height: int = 1) -> bytes:
    """A real image, in black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" * (width + 1) for _ in range(height)))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", rows)
        + chunk(b"IEND", b"")
    )


PNG = png()


def files(ran: Ran) -> dict[str, tuple[str, bytes]]:
    """Type and contents of what was handed over, by name; the pieces of each must be in order and whole."""
    return gathered(ran.frames)


def gathered(frames: list[Frame]) -> dict[str, tuple[str, bytes]]:
    found: dict[str, tuple[str, bytes]] = {}
    pieces: dict[str, int] = {}
    for frame in frames:
        if frame["type"] == "artifact":
            assert frame["id"] == "run-1", frame
            name = frame["name"]
            pieces[name] = pieces.get(name, 0) + 1
            assert frame["chunk"] == pieces[name] <= frame["of"], frame
            found[name] = (
                frame["mime"],
                found.get(name, ("", b""))[1] + base64.b64decode(frame["data"], validate=True),
            )
    return found


# Libraries that aren't there, as far as they are looked at.
FAKES = f"""
import sys, types
PNG = {PNG!r}
def module(name, **names):
    m = sys.modules[name] = types.ModuleType(name)
    for key, value in names.items():
        if isinstance(value, type): value.__module__ = name
        setattr(m, key, value)
    return m
class Figure:
    def savefig(self, file, format=None, bbox_inches=None):
        file.write(PNG if format == 'png' else format.encode())
class Image:
    mode = 'RGB'
    def convert(self, mode):
        self.mode = mode
        return self
    def save(self, file, format=None):
        file.write(PNG if format == 'PNG' else f'{{format}} {{self.mode}}'.encode())
class PngImageFile(Image): pass
class DataFrame:
    def __len__(self): return 100
    def to_string(self, **given): return f"a  b\\n1  2 {{given['max_rows']}}"
    def to_csv(self, sep=','): return f'a{{sep}}b\\n'
    def to_json(self, orient=None): return '[]'
class Series(DataFrame): pass
module('matplotlib', rcParams={{}})
module('matplotlib.figure', Figure=Figure)
module('PIL'); module('PIL.Image', Image=Image); module('PIL.PngImagePlugin', PngImageFile=PngImageFile)
module('pandas'); module('pandas.core')
module('pandas.core.frame', DataFrame=DataFrame); module('pandas.core.series', Series=Series)
"""
PYPLOT = """
class Pyplot:
    open = {n: Figure() for n in (1, 2)}
    def get_fignums(self): return sorted(self.open)
    def figure(self, n): return self.open[n]
    def close(self, figure): self.open = {n: f for n, f in self.open.items() if f is not figure}
sys.modules['matplotlib.pyplot'] = Pyplot()
"""


class LastValue(unittest.TestCase):
    def test_shown_or_not(self) -> None:
        for code, want in (
            ("1 + 1", "2\n"),
            ("None", ""),
            ("1 + 1;", ""),
            ("1 + 1 ; # quiet", ""),
            ("(1 + 1\n) ;\n# quiet\n", ""),
            ("1 + 1 # loud; really", "2\n"),
            ("'a;'", "'a;'\n"),
            ("x = 5; x", "5\n"),
            ("'é';", ""),
            ("('é' 'é'\n  ) \\\n;", ""),
            ("import asyncio\nawait asyncio.sleep(0, 5);", ""),
            ("print(1);", "1\n"),
            ("1\r\n2;\r\n", ""),
            ("3\n_", "3\n"),
            ("class A:\n    def __repr__(self): return 'an A'\nA()", "an A\n"),
            ("class A:\n    def __repr__(self): return 'an A'\n[A()]", "[an A]\n"),
            ("import collections\ncollections.Counter('aab')", "Counter({'a': 2, 'b': 1})\n"),
        ):
            with self.subTest(code):
                if code[-1] == "_":
                    code, want = "import sys\nsys.displayhook(7)\n_", "7\n7\n"
                ran = run(code)
                self.assertEqual((ran.stdout, ran.stderr, ran.error), (want, "", {}))

    def test_images(self) -> None:
        for value, name in (("Figure()", "figure-1.png"), ("PngImageFile()", "image-1.png")):
            with self.subTest(value):
                ran = run(FAKES + value)
                self.assertEqual((files(ran), ran.stdout, ran.error), ({name: ("image/png", PNG)}, "", {}))

    def test_what_fails_to_be_shown_is_the_codes_error(self) -> None:
        ran = run("class A:\n    def __repr__(self): 1/0\nA()")
        self.assertEqual((ran.error["type"], ran.error["line"]), ("ZeroDivisionError", 2))
        self.assertNotIn("guest", ran.error["traceback"])

    def test_a_hook_of_the_codes_own(self) -> None:
        self.assertEqual(
            run("import sys\nsys.displayhook = lambda v: print('mine', v)\n1 + 1").stdout, "mine 2\n"
        )


class Display(unittest.TestCase):
    def test_text(self) -> None:
        for code, want in (
            ("display(1, 'a')", "1\n'a'\n"),
            ("display()", ""),
            ("display('<b>', mime='text/html')", "<b>\n"),
            ("display(b'caf\\xc3\\xa9', mime='text/plain')", "café\n"),
            (FAKES + "display(DataFrame(), Series())", "a  b\n1  2 60\na  b\n1  2 60\n"),
            ("class A:\n    def _repr_markdown_(self): return '# a'\ndisplay(A())", "# a\n"),
            (
                "class A:\n"
                "    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/plain': "
                "'plain', 'x/y': 1}\n"
                "display(A())",
                "plain\n",
            ),
            (
                "class A:\n    def _repr_png_(self): return None\n    def __repr__(self): return 'an A'\n"
                "display(A())",
                "an A\n",
            ),
            (
                "class A:\n    def _repr_png_(self): raise NotImplementedError\n"
                "    def __repr__(self): return 'an A'\ndisplay(A())",
                "an A\n",
            ),
            (
                "class A:\n    def __getattr__(self, name): return lambda *a, **k: name\n"
                "    def __repr__(self): return 'an A'\ndisplay(A())",
                "an A\n",
            ),
            ("class A:\n    def _repr_png_(self): return b'x'\ndisplay(A)", "<class '__main__.A'>\n"),
            ("display(type(display).__name__)", "'method'\n"),
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual((ran.stdout, ran.stderr, ran.error, files(ran)), (want, "", {}, {}))

    def test_files(self) -> None:
        text = base64.b64encode(PNG).decode()
        for code, name, kind, data in (
            (f"display({PNG!r}, mime='image/png')", "image-1.png", "image/png", PNG),
            ("display('<svg/>', mime='image/svg+xml')", "image-1.svg", "image/svg+xml", b"<svg/>"),
            (
                "display({}, mime='application/json')".format("'[1]'"),
                "display-1.json",
                "application/json",
                b"[1]",
            ),
            ("display(b'12', mime='x/strange')", "display-1", "x/strange", b"12"),
            (
                f"class A:\n    def _repr_png_(self): return {PNG!r}\ndisplay(A())",
                "image-1.png",
                "image/png",
                PNG,
            ),
            (
                f"class A:\n    def _repr_png_(self): return ({text!r}, {{'width': 1}})\ndisplay(A())",
                "image-1.png",
                "image/png",
                PNG,
            ),
            (
                "class A:\n    def _repr_jpeg_(self): return b'\\xff\\xd8\\xff'\ndisplay(A())",
                "image-1.jpg",
                "image/jpeg",
                b"\xff\xd8\xff",
            ),
            (
                "class A:\n    def _repr_svg_(self): return '<svg/>'\ndisplay(A())",
                "image-1.svg",
                "image/svg+xml",
                b"<svg/>",
            ),
            (
                "class A:\n"
                "    def _repr_mimebundle_(self, **k):\n"
                f"        return ({{'image/png': {text!r}, 'text/plain': 'no'}}, {{}})\n"
                "display(A())",
                "image-1.png",
                "image/png",
                PNG,
            ),
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual((files(ran), ran.stdout, ran.error), ({name: (kind, data)}, "", {}))

    def test_wrong_use(self) -> None:
        for code, kind, part in (
            ("display(b'a', mime='picture')", "ValueError", "write one such as image/png"),
            ("display(1, mime='image/png')", "TypeError", "takes bytes or str, not int"),
            ("save_artifact(b'a', 'b')", "TypeError", "takes a file name first"),
            ("save_artifact('a', 1.5)", "TypeError", "takes bytes, str, a path"),
            ("save_artifact('a', b'', 'a b/c')", "ValueError", "no type of data"),
            (
                "save_artifact('a.csv', '/workspace/b.csv')",
                "FileNotFoundError",
                "no such file: '/workspace/b.csv'",
            ),
            ("save_artifact('a.csv', 'a.csv')", "FileNotFoundError", "no such file: 'a.csv'"),
            ("import pathlib\nsave_artifact('a', pathlib.Path('nothing'))", "FileNotFoundError", "nothing"),
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual(ran.error["type"], kind)
                self.assertIn(part, ran.error["message"])

    def test_names_don_t_collide_and_order_is_kept(self) -> None:
        ran = run(
            f"p = {PNG!r}\nprint('a')\ndisplay(p, mime='image/png')\nprint('b')\n"
            "display(p, p, mime='image/png')"
        )
        self.assertEqual(list(files(ran)), ["image-1.png", "image-1-2.png", "image-1-3.png"])
        first = next(i for i, frame in enumerate(ran.frames) if frame["type"] == "artifact")
        before = "".join(frame["text"] for frame in ran.frames[:first] if frame["type"] == "output")
        self.assertTrue(before.startswith("a\n"), before)  # what was printed before is there before

    def test_from_threads(self) -> None:
        code = (
            "import threading\n"
            "ts = [threading.Thread(target=save_artifact, args=(f'{n}.bin', bytes([n]) * 2_000_000)) for n "
            "in range(4)]\n"
            "for t in ts: t.start()"
        )
        found = files(run(code))
        self.assertEqual(
            {name: data for name, (_, data) in found.items()},
            {f"{n}.bin": bytes([n]) * 2_000_000 for n in range(4)},
        )

    def test_a_fork_hands_nothing_over(self) -> None:
        code = (
            "import os\npid = os.fork()\nif pid == 0:\n    try:\n        save_artifact('a', 'b')\n"
            "    except RuntimeError as e:\n        print(e, flush=True)\n    os._exit(0)\n"
            "os.waitpid(pid, 0)"
        )
        ran = run(code)
        self.assertEqual(files(ran), {})
        self.assertIn("not by a fork of it", ran.stdout)


class Figures(unittest.TestCase):
    def test_open_ones_are_shown_at_the_end(self) -> None:
        for end in ("", "import sys; sys.exit(0)", "print('still printed')"):
            with self.subTest(end):
                ran = run(FAKES + PYPLOT + end)
                self.assertEqual(sorted(files(ran)), ["figure-1-2.png", "figure-1.png"])
                self.assertEqual(ran.error, {})

    def test_also_when_the_code_raised(self) -> None:
        ran = run(FAKES + PYPLOT + "1/0")
        self.assertEqual((len(files(ran)), ran.error["type"]), (2, "ZeroDivisionError"))

    def test_shown_ones_are_not_shown_again(self) -> None:
        ran = run(FAKES + PYPLOT + "display(Pyplot.open[1])")
        self.assertEqual(len(files(ran)), 2)

    def test_one_that_cant_be_drawn(self) -> None:
        ran = run(FAKES + PYPLOT + "Pyplot.open[1].savefig = None")
        self.assertEqual((len(files(ran)), ran.ok), (1, True))
        self.assertIn("figure 1 could not be shown: TypeError", ran.stderr)

    def test_nothing_is_imported_for_it(self) -> None:
        ran = run(
            "import sys\n"
            "print([m for m in ('matplotlib', 'guest.display', 'guest.artifacts', 'guest.hints', "
            "'guest.tracebacks') if m in sys.modules])"
        )
        self.assertEqual(ran.stdout, "[]\n")


class Saving(unittest.TestCase):
    def test_kinds(self) -> None:
        for code, name, kind, data in (
            ("save_artifact('a.txt', 'é')", "a.txt", "text/plain", "é".encode()),
            ("save_artifact('a', 'text')", "a", "text/plain", b"text"),
            ("save_artifact('a.bin', bytearray(b'\\0\\1'))", "a.bin", "application/octet-stream", b"\0\1"),
            (f"save_artifact('a', {PNG!r})", "a", "image/png", PNG),
            ("save_artifact('a.txt', b'x', mime='text/x-own')", "a.txt", "text/x-own", b"x"),
            (
                "import pathlib\np = pathlib.Path('/tmp/guest-test.csv'); n = p.write_bytes(b'a,b\\r\\n')\n"
                "save_artifact('b.csv', p); p.unlink()",
                "b.csv",
                "text/csv",
                b"a,b\r\n",
            ),
            (
                "save_artifact('a.json', {'é': [1, None]})",
                "a.json",
                "application/json",
                '{\n "é": [\n  1,\n  null\n ]\n}'.encode(),
            ),
            ("import io\nsave_artifact('a.md', io.StringIO('# x'))", "a.md", "text/markdown", b"# x"),
            (FAKES + "save_artifact('f.png', Figure())", "f.png", "image/png", PNG),
            (FAKES + "save_artifact('f.svg', Figure())", "f.svg", "image/svg+xml", b"svg"),
            (
                FAKES + "i = Image(); i.mode = 'RGBA'\nsave_artifact('i.jpg', i)",
                "i.jpg",
                "image/jpeg",
                b"JPEG RGB",
            ),
            (
                FAKES + "i = Image(); i.mode = 'CMYK'\nsave_artifact('i.webp', i)",
                "i.webp",
                "image/webp",
                b"WEBP RGB",
            ),
            (FAKES + "save_artifact('t.csv', DataFrame())", "t.csv", "text/csv", b"a,b\n"),
            (FAKES + "save_artifact('t.tsv', DataFrame())", "t.tsv", "text/tab-separated-values", b"a\tb\n"),
            (FAKES + "save_artifact('t.json', DataFrame())", "t.json", "application/json", b"[]"),
            (FAKES + "save_artifact('t', Series())", "t", "text/csv", b"a,b\n"),
            ("save_artifact('sub/dir/a.txt', '')", "sub/dir/a.txt", "text/plain", b""),
        ):
            with self.subTest(code):
                ran = run(code.replace("\nsave_artifact", "\nn = save_artifact") + ";")
                self.assertEqual((files(ran), ran.error, ran.stderr), ({name: (kind, data)}, {}, ""))

    def test_the_path_of_a_file(self) -> None:
        with tempfile.TemporaryDirectory(
            dir="/tmp"
        ) as folder:  # a container has its own /tmp, and makes the folder there
            begin = (
                f"import os, pathlib\nos.makedirs({folder!r}, exist_ok=True)\nos.chdir({folder!r})\n"
                "open('r.csv', 'w').write('a,b')\nn = "
            )
            for code, name, data in (
                (f"save_artifact('x.csv', '{folder}/r.csv')", "x.csv", b"a,b"),
                ("save_artifact('x.csv', 'r.csv')", "x.csv", b"a,b"),
                (f"save_artifact('{folder}/r.csv')", "r.csv", b"a,b"),
                ("save_artifact('r.csv')", "r.csv", b"a,b"),
                ("save_artifact(pathlib.Path('r.csv'))", "r.csv", b"a,b"),
                ("save_artifact('x.csv', 'other.csv')", "x.csv", b"other.csv"),
                ("save_artifact('x.csv', 'r.csv\\n')", "x.csv", b"r.csv\n"),
                ("save_artifact('x.csv', '/etc/passwd')", "x.csv", b"/etc/passwd"),
                ("os.symlink('/etc/passwd', 'l'); save_artifact('x.csv', 'l')", "x.csv", b"l"),
                ("save_artifact('x.csv', 'x' * 100_000)", "x.csv", b"x" * 100_000),
            ):
                with self.subTest(code):
                    ran = run(f"{begin}{code};")
                    self.assertEqual(
                        (files(ran), ran.error, ran.stderr), ({name: ("text/csv", data)}, {}, "")
                    )
        for code in ("save_artifact('nothing.csv')", "save_artifact({'a': 1})"):
            ran = run(code)
            self.assertIn("takes a name and data, or the path of a file", ran.error["message"])

    def test_names_are_made_safe_and_that_is_told(self) -> None:
        ran = run(
            "print(save_artifact('../../etc/pass wd', b'x'), save_artifact('a', b''), save_artifact('A',"
            " b'1'))"
        )
        self.assertEqual((list(files(ran)), ran.stdout), (["etc/pass_wd", "a", "A-2"], "etc/pass_wd a A-2\n"))
        self.assertEqual(
            ran.stderr,
            "save_artifact: '../../etc/pass wd' is handed over as 'etc/pass_wd'\n"
            "save_artifact: 'A' is handed over as 'A-2'\n",
        )

    def test_limit(self) -> None:
        ran = run(
            "save_artifact('a', bytes(50_000))\nsave_artifact('b', bytes(60_000))", maxArtifactBytes=100_000
        )
        self.assertEqual((list(files(ran)), ran.error["type"]), (["a"], "LimitReached"))
        self.assertIn(
            "b of 60,000 bytes was not handed over: the files of one run may have 100,000 bytes together",
            ran.error["message"],
        )
        ran = run("display(bytes(200_000), mime='image/png')\nprint('on')", maxArtifactBytes=100_000)
        self.assertEqual((files(ran), ran.stdout, ran.ok), ({}, "on\n", True))
        self.assertIn("200,000 bytes was not handed over", ran.stderr)

    def test_number(self) -> None:
        ran = run("for n in range(200): save_artifact(f'{n}', b'')")
        self.assertEqual((len(files(ran)), ran.error["type"]), (100, "LimitReached"))

    def test_large_ones_come_in_pieces(self) -> None:
        ran = run("import os\nsave_artifact('big', bytes(range(256)) * 20_000)")
        self.assertEqual(files(ran)["big"][1], bytes(range(256)) * 20_000)
        self.assertEqual(sum(frame["type"] == "artifact" for frame in ran.frames), 4)

    def test_what_was_sent_survives_every_ending(self) -> None:
        for end in (
            "import os; os._exit(3)",
            "import ctypes; ctypes.string_at(0)",
            "import os; os.kill(os.getpid(), 9)",
            "1/0",
        ):
            with self.subTest(end):
                self.assertEqual(files(run(f"n = save_artifact('a', 'kept')\n{end}"))["a"][1], b"kept")
        with Guest() as guest:
            guest.execute("save_artifact('a', b'k' * 3_000_000)\nprint('up')\nimport time\ntime.sleep(1000)")
            frames = guest.until("output")
            guest.send({"type": "cancel", "id": "run-1"})
            frames += guest.until("done")
            self.assertEqual(gathered(frames)["a"][1], b"k" * 3_000_000)

    def test_forged_pieces(self) -> None:
        """What code sends by itself is taken as what it says, or not at all."""
        pieces: list[dict[str, Any]] = [
            {"name": 1},
            {"mime": None},
            {"data": ["YQ=="]},
            {"chunk": True},
            {"of": 1.0},
        ]
        whole = {
            "type": "artifact",
            "name": "good",
            "mime": "x/y",
            "data": "YQ==",
            "chunk": 1,
            "of": 1,
            "id": "other",
            "more": 1,
        }
        lines = "".join(json.dumps({**whole, **piece}) + "\n" for piece in [*pieces, {}])
        ran = run(
            "import guest.child, gc\nfrom guest.link import Link\n"
            "link = next(o for o in gc.get_objects() if isinstance(o, Link))\n"
            f"import os\ndata = {lines.encode()!r}\nwhile data: data = data[os.write(link.fd, data):]"
        )
        self.assertEqual(
            [frame for frame in ran.frames if frame["type"] == "artifact"],
            [
                {
                    "type": "artifact",
                    "id": "run-1",
                    "name": "good",
                    "mime": "x/y",
                    "data": "YQ==",
                    "chunk": 1,
                    "of": 1,
                }
            ],
        )


class LeftBehind(unittest.TestCase):
    """Files in /workspace/out, which these tests put elsewhere."""

    def leave(self, code: str, **options: Any) -> Ran:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            self.out = out = f"{folder}/out"
            with Guest({"outcome": ('OUT = "/workspace/out"', f"OUT = {out!r}")}) as guest:
                guest.execute(
                    f"import os\nos.mkdir({out!r})\nos.chdir({out!r})\nOUT = {out!r}\n{code}", **options
                )
                frames = guest.until("done")
                self.assertEqual(guest.status(), 0)
                return Ran(frames)

    def setUp(self) -> None:
        if os.environ.get("GUEST_UNDER"):
            self.skipTest(
                "the directory is one of this machine; in a container /workspace/out is tested below"
            )

    def test_handed_over(self) -> None:
        ran = self.leave(
            "os.mkdir('sub')\nopen('b.csv', 'w').write('1')\nopen('a.png', 'w').write('2')\n"
            "open('sub/c d', 'w').write('3');"
        )
        want = {
            "a.png": ("image/png", b"2"),
            "b.csv": ("text/csv", b"1"),
            "sub/c_d": ("application/octet-stream", b"3"),
        }
        said = "[/OUT: handed over: sub/c d as sub/c_d]\n"
        self.assertEqual((files(ran), list(files(ran)), self.said(ran)), (want, list(want), said))

    def said(self, ran: Ran) -> str:
        return ran.stderr.replace(self.out, "/OUT").replace(os.path.dirname(self.out), "/HOME")

    def test_however_the_run_ends(self) -> None:
        for end in ("os._exit(3)", "os.kill(os.getpid(), 9)", "1/0", "raise SystemExit"):
            with self.subTest(end):
                self.assertEqual(files(self.leave(f"open('a', 'w').write('kept')\n{end}"))["a"][1], b"kept")

    def test_links_and_other_things_are_not_followed(self) -> None:
        ran = self.leave(
            "os.symlink('/proc/self/environ', 'link')\nos.symlink('/etc', 'folder')\nos.mkfifo('pipe')\n"
            "import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('sock')\nopen('real', 'w').write('1');"
        )
        self.assertEqual(list(files(ran)), ["real"])
        said = (
            "[/OUT: not handed over: folder (a link), link (a link), pipe (no regular file), sock (no "
            "regular file)]\n"
        )
        self.assertEqual(self.said(ran), said)

    def test_what_is_not_handed_over_is_said(self) -> None:
        for code, said in (
            ("open('.env', 'w').close()", "[/OUT: handed over: .env as env]\n"),
            ("os.symlink('x', 'a\\nb')", "[/OUT: not handed over: 'a\\nb' (a link)]\n"),
            (
                "os.makedirs('/'.join('abcdefgh') + '/i')",
                "[/OUT: not handed over: a/b/c/d/e/f/g/h (too deep)]\n",
            ),
            (
                "os.rmdir(os.getcwd()); os.symlink('/etc', OUT)",
                "[/OUT: not handed over: all of it (Not a directory)]\n",
            ),
        ):
            with self.subTest(code):
                self.assertEqual(self.said(self.leave(f"{code};")), said)

    def test_files_that_are_gone(self) -> None:
        gone = '[files in /HOME are gone after the run: a.txt; save_artifact("a.txt") or write to /OUT]\n'
        for code, said in (
            ("open('../a.txt', 'w').close()", gone),
            (
                "open('../a.txt', 'w').close(); os.symlink('x', 'l')",
                "[/OUT: not handed over: l (a link)]\n" + gone,
            ),
            ("os.makedirs('../d/e'); open('../d/e/a.txt', 'w').close()", gone.replace("a.txt", "d/e/a.txt")),
            (
                "open('../.a', 'w').close(); os.mkdir('../__pycache__'); open('../__pycache__/a',"
                " 'w').close()",
                "",
            ),
            ("os.mkdir('../in'); open('../in/a', 'w').close()", ""),
            ("open('../a.txt', 'w').close(); save_artifact('b', '')", ""),
            ("open('../a.txt', 'w').close(); open('b', 'w').close()", ""),
            ("open('../a.txt', 'w').close(); os._exit(3)", ""),
        ):
            with self.subTest(code):
                self.assertEqual(self.said(self.leave(f"{code};")), said)

    def test_bounds(self) -> None:
        ran = self.leave(
            "open('a', 'wb').truncate(1 << 40)\nopen('b', 'w').write('1')\n"
            "open('c', 'wb').write(bytes(90_000));",
            maxArtifactBytes=80_000,
        )
        self.assertEqual(list(files(ran)), ["b"])
        self.assertIn(
            "not handed over, since the files of one run may be 100 with 80,000 bytes together: a"
            " (1,099,511,627,776 bytes), c (",
            ran.stderr,
        )
        ran = self.leave("for n in range(150): open(f'{n:03}', 'w').close()")
        self.assertEqual(list(files(ran)), [f"{n:03}" for n in range(100)])
        self.assertIn("and 45 more", ran.stderr)

    def test_deep_and_many(self) -> None:
        ran = self.leave(
            "for n in range(20):\n    os.mkdir('d')\n    os.chdir('d')\n    open('f', 'w').close()\n"
            "os.chdir('/')\n"
        )
        self.assertEqual(max(name.count("/") for name in files(ran)), 7)
        ran = self.leave("for n in range(12_000): os.symlink('x', f'{n}')\nopen('zzz', 'w').close()")
        self.assertTrue(ran.ok)

    def test_a_name_that_was_taken_already(self) -> None:
        ran = self.leave("n = save_artifact('a.txt', 'saved')\nopen('a.txt', 'w').write('left');")
        self.assertEqual(files(ran), {"a.txt": ("text/plain", b"saved"), "a-2.txt": ("text/plain", b"left")})


@unittest.skipUnless(os.environ.get("GUEST_UNDER"), "the directory is a container's")
class LeftBehindInAContainer(unittest.TestCase):
    def test_handed_over(self) -> None:
        ran = run("open('out/a.txt', 'w').write('kept')\nimport os; os.kill(os.getpid(), 9)")
        self.assertEqual(files(ran), {"a.txt": ("text/plain", b"kept")})


class Names(unittest.TestCase):
    def test_safe(self) -> None:
        for name, want in {
            "plot.png": "plot.png",
            "Übersicht 1.csv": "Übersicht_1.csv",
            "../../x": "x",
            "/etc/passwd": "passwd",
            "C:\\Users\\x.txt": "x.txt",
            "a/../b//c.txt": "a/b/c.txt",
            ".bashrc": "bashrc",
            "...": "file",
            "": "file",
            "a\0b\nc\u202e.txt": "a_b_c_.txt",
            "x" * 500 + ".csv": "x" * 140 + ".csv",
            "/".join("abcdefghijkl"): "e/f/g/h/i/j/k/l",
        }.items():
            with self.subTest(name):
                self.assertEqual(artifacts.safe(name), want)
                self.assertEqual(artifacts.safe(want), want)

    def test_free(self) -> None:
        self.assertEqual(artifacts.free("a.tar.gz", {"a.tar.gz"}), "a.tar-2.gz")
        self.assertEqual(artifacts.free("d/A", {"d/a", "d/a-2"}), "d/A-3")
        self.assertEqual(artifacts.free("a.b/c", {"a.b/c"}), "a.b/c-2")

    def test_types(self) -> None:
        self.assertEqual(mime.guess("x.CSV", b""), "text/csv")
        self.assertEqual(mime.guess("x", PNG), "image/png")
        self.assertEqual(mime.guess(".png", b""), mime.BYTES)
        self.assertEqual(
            (mime.extension("image/jpeg"), mime.extension("text/html"), mime.extension("x/y")),
            (".jpg", ".html", ""),
        )

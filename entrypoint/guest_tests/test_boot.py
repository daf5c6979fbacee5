"""The code that comes along with the guest's sources."""

from __future__ import annotations

import json
import marshal
import subprocess
import sys
import unittest
import zlib
from binascii import a2b_base64
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from guest import boot
from guest_tests.host import payload, sources


def code(magic: bytes, text: str) -> bytes:
    packed = zlib.compress(marshal.dumps(compile(text, boot.file_name("names"), "exec")))
    return magic + marshal.dumps({"names": packed})


class Started(unittest.TestCase):
    COMMAND = (
        sys.executable,
        "-I",
        "-B",
        "-c",
        (Path(__file__).resolve().parent.parent / "boot.py").read_text(encoding="utf-8"),
    )

    def test_an_empty_line_is_answered_with_one(self) -> None:
        for given, answer in ((b"\n", b"\n"), (b"", b"")):
            with subprocess.Popen(self.COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as guest:
                assert guest.stdin and guest.stdout
                guest.stdin.write(given)
                guest.stdin.flush()
                self.assertEqual(guest.stdout.read(len(answer)), answer)
                guest.stdin.write(payload(sources()))
                guest.stdin.flush()
                self.assertEqual(json.loads(guest.stdout.readline())["type"], "ready")


class Compiled(unittest.TestCase):
    SOURCES = zlib.compress(json.dumps({"names": "where = 'source'"}).encode())

    def loaded(self, code: bytes) -> object:
        finder = boot.Sources(self.SOURCES, boot.compiled(code))
        namespace: dict[str, object] = {}
        exec(finder.get_code("guest.names"), namespace)
        return namespace["where"]

    def test_is_used_where_it_is_of_this_python(self) -> None:
        self.assertEqual(self.loaded(code(MAGIC_NUMBER, "where = 'code'")), "code")

    def test_is_passed_over_where_it_is_of_another(self) -> None:
        self.assertEqual(self.loaded(code(b"\0\0\r\n", "where = 'code'")), "source")

    def test_need_not_be_there(self) -> None:
        self.assertEqual(self.loaded(b""), "source")

    def test_every_module_is_in_it_under_its_own_file_name(self) -> None:
        text = (Path(__file__).resolve().parent.parent / "entrypoint.go").read_text(encoding="utf-8")
        program = text.partition("const compiler = `")[2].partition("`")[0]
        command = [sys.executable, "-I", "-B", "-c", program]
        made = subprocess.run(command, input=payload(sources()), capture_output=True, check=True)
        finder = boot.Sources(b"", boot.compiled(a2b_base64(made.stdout)))
        for name in sources():
            full = boot.PACKAGE if name == "__init__" else f"{boot.PACKAGE}.{name}"
            self.assertEqual(finder.get_code(full).co_filename, boot.file_name(name))

    def test_the_source_can_be_asked_for(self) -> None:
        for compiled in ({}, boot.compiled(code(MAGIC_NUMBER, "where = 'code'"))):
            finder = boot.Sources(self.SOURCES, compiled)
            self.assertEqual(finder.get_source("guest.names"), "where = 'source'")
            self.assertIsNone(finder.get_source("guest.nothing"))
            self.assertIsNone(finder.find_spec("names"))


if __name__ == "__main__":
    unittest.main()

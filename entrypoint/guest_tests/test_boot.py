"""The code that comes along with the guest's sources."""

from __future__ import annotations

import json
import marshal
import subprocess
import sys
import unittest
import zlib
from binascii import b2a_base64
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from guest import boot
from guest_tests.host import sources


def line(magic: bytes, text: str) -> str:
    code = {"names": compile(text, boot.file_name("names"), "exec")}
    return b2a_base64(magic + zlib.compress(marshal.dumps(code))).decode()


class Compiled(unittest.TestCase):
    def loaded(self, code: str) -> object:
        finder = boot.Sources({"names": "where = 'source'"}, boot.compiled(code))
        namespace: dict[str, object] = {}
        exec(finder.get_code("guest.names"), namespace)
        return namespace["where"]

    def test_is_used_where_it_is_of_this_python(self) -> None:
        self.assertEqual(self.loaded(line(MAGIC_NUMBER, "where = 'code'")), "code")

    def test_is_passed_over_where_it_is_of_another(self) -> None:
        self.assertEqual(self.loaded(line(b"\0\0\r\n", "where = 'code'")), "source")

    def test_need_not_be_there(self) -> None:
        self.assertEqual(self.loaded(""), "source")

    def test_every_module_is_in_it_under_its_own_file_name(self) -> None:
        text = (Path(__file__).resolve().parent.parent / "entrypoint.go").read_text(encoding="utf-8")
        program = text.partition("const compiler = `")[2].partition("`")[0]
        payload = json.dumps(sources()).encode()
        made = subprocess.run(
            [sys.executable, "-I", "-B", "-c", program], input=b"%d\n" % len(payload) + payload, capture_output=True, check=True
        )
        code = boot.compiled(made.stdout.decode())
        self.assertEqual({name: boot.file_name(name) for name in sources()}, {name: c.co_filename for name, c in code.items()})


if __name__ == "__main__":
    unittest.main()

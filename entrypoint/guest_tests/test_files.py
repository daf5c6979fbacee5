"""Files that come with a run: where they are put, and what can't be put anywhere."""

from __future__ import annotations

import base64
import os
import tempfile
import unittest
from pathlib import Path

from guest_tests.host import Frame, Guest


def changed(directory: str) -> dict[str, tuple[str, str]]:
    """The guest with another directory for files: there is no /workspace outside a container."""
    return {"files": ('IN = "/workspace/in"', f"IN = {directory!r}")}


def piece(name: str, data: bytes) -> Frame:
    return {"type": "file", "id": "run-1", "name": name, "data": base64.b64encode(data).decode()}


@unittest.skipIf(
    os.environ.get("GUEST_UNDER"), "looks into the directory; TestFilesInAndOut does so in a container"
)
class Files(unittest.TestCase):
    def test_files_are_there_before_the_code(self) -> None:
        with tempfile.TemporaryDirectory() as base, Guest(changed(f"{base}/in")) as guest:
            big = os.urandom(1 << 20)
            for start in range(0, len(big), 1 << 19):
                guest.send(piece("big.bin", big[start : start + (1 << 19)]))
            guest.send(piece("ü b.txt", b"one"))
            guest.send(piece("empty", b""))
            code = (
                "import os\n"
                f"print(sorted((n, os.path.getsize(f'{base}/in/{{n}}')) for n in os.listdir('{base}/in')))"
            )
            guest.execute(code)
            frames = guest.until("done")
            said = "".join(f["text"] for f in frames if f["type"] == "output")
            self.assertEqual(said, "[('big.bin', 1048576), ('empty', 0), ('ü b.txt', 3)]\n")
            self.assertEqual(Path(f"{base}/in/big.bin").read_bytes(), big)
            self.assertEqual(Path(f"{base}/in/empty").stat().st_mode & 0o777, 0o644)

    def test_a_link_is_replaced(self) -> None:
        with tempfile.TemporaryDirectory() as base:
            os.symlink(f"{base}/target", f"{base}/a")
            with Guest(changed(base)) as guest:
                guest.send(piece("a", b"x"))
                guest.execute("pass")
                guest.until("done")
            self.assertEqual(os.listdir(base), ["a"])
            self.assertEqual(Path(f"{base}/a").read_bytes(), b"x")

    def test_files_of_a_run_that_does_not_come(self) -> None:
        with tempfile.TemporaryDirectory() as base, Guest(changed(f"{base}/in")) as guest:
            for name in ("a", "b"):
                guest.send({**piece(name, b"old"), "id": "run-0"})
            guest.send(piece("a", b"new"))
            guest.execute("pass")
            guest.until("done")
            self.assertEqual(os.listdir(f"{base}/in"), ["a"])
            self.assertEqual(Path(f"{base}/in/a").read_bytes(), b"new")

    def test_files_that_cannot_be_written(self) -> None:
        with tempfile.TemporaryDirectory() as base:
            os.mkdir(f"{base}/folder")
            for name in ("folder", "../a", "", ".", "..", "a/b", "a\0b"):
                with self.subTest(name), Guest(changed(base)) as guest:
                    guest.until("ready")
                    guest.send(piece(name, b"x"))
                    self.assertEqual(guest.status(), 70)
                    self.assertIn("can't be written", guest.errors())
            self.assertEqual(os.listdir(base), ["folder"])

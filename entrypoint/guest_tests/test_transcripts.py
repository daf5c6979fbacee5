"""Plays the host's lines of every transcript into the real guest. testdata/transcripts/README.md
says what they mean.
"""

from __future__ import annotations

import json
import re
import unittest
from pathlib import Path
from typing import Any

from guest_tests.host import HERE, Frame, Guest

FILES = sorted((HERE / "testdata" / "transcripts").glob("*.txtar"))
_SAMPLES: Frame = {"options": {}, "id": "any"}


class Transcript:
    def __init__(self, path: Path) -> None:
        parts = re.split(r"^-- (.+) --\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        self.prose = parts[0]
        self.files = dict(zip(parts[1::2], parts[2::2], strict=True))
        match = re.search(r"^Played by: (\w+)$", self.prose, re.MULTILINE)
        self.played_by = match[1] if match else "both"
        self.result: Frame = json.loads(self.files["result"])
        lines = [line for line in self.files["frames"].splitlines() if line and not line.startswith("#")]
        self.lines = [(side, self.made(text)) for side, _, text in (line.partition("> ") for line in lines)]

    def made(self, text: str) -> Any:
        """A frame with its strings made, or a line that begins with @."""
        return self._made(json.loads(text)) if text.startswith("{") else text

    def _made(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._made(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._made(item) for item in value]
        if value == "@code":
            return self.files["code.py"]
        if isinstance(value, str) and (match := re.fullmatch(r"@repeat\((.*), (\d+)\)", value)):
            return match[1] * int(match[2])
        return value


def matches(want: Any, got: Any) -> bool:
    if want == "*":
        return True
    if isinstance(want, dict):
        return (
            isinstance(got, dict)
            and want.keys() == got.keys()
            and all(matches(want[key], got[key]) for key in want)
        )
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(matches, want, got))
    if isinstance(want, str) and isinstance(got, str) and "*" in want:
        pattern = ".*".join(map(re.escape, want.split("*")))
        return re.fullmatch(pattern, got, re.DOTALL) is not None
    return type(want) is type(got) and bool(want == got)


class Player:
    """Goes through a transcript with a guest."""

    def __init__(self, test: unittest.TestCase, transcript: Transcript, guest: Guest) -> None:
        self._test, self._guest = test, guest
        self._lines = transcript.lines
        self._next: list[Frame] = []
        self._texts = {"stdout": "", "stderr": ""}
        frames = [line for side, line in self._lines if side == "host" and isinstance(line, dict)]
        self._ids = {"any", *(frame["id"] for frame in frames if "id" in frame)}

    def play(self) -> dict[str, str]:
        """Gives all that was printed."""
        printed = {"stdout": "", "stderr": ""}
        wanted = {"stdout": "", "stderr": ""}
        for i, (side, line) in enumerate(self._lines):
            if side == "host":
                self._send(line)
            elif isinstance(line, str):
                self._end(int(line.removeprefix("@exit ")))
                return printed
            elif line["type"] == "output":
                wanted[line["stream"]] += line["text"]
                following = (
                    self._lines[i + 1][1]
                    if i + 1 < len(self._lines) and self._lines[i + 1][0] == "guest"
                    else None
                )
                if isinstance(following, dict) and following["type"] == "output":
                    continue
                got = self._outputs(wanted, to_the_end=isinstance(following, dict))
                self._test.assertTrue(matches(wanted, got), f"output {cut(got)}, want {cut(wanted)}")
                printed = {stream: printed[stream] + got[stream] for stream in printed}
                wanted = {"stdout": "", "stderr": ""}
            else:
                frame = self._read()
                self._test.assertTrue(matches(line, frame), f"got  {cut(frame)}\nwant {cut(line)}")
        self._end(0)
        return printed

    def _send(self, line: Any) -> None:
        if line == "@close":
            self._guest.close()
        elif isinstance(line, str):
            self._guest.raw(line.removeprefix("@raw ").encode() + b"\n")
        else:
            self._guest.send({key: _SAMPLES[key] if value == "*" else value for key, value in line.items()})

    def _read(self) -> Frame | None:
        return self._next.pop() if self._next else self._guest.read()

    def _outputs(self, wanted: dict[str, str], to_the_end: bool) -> dict[str, str]:
        """Joins output frames: up to the next other frame, or until it is what is wanted."""
        got = {"stdout": "", "stderr": ""}
        while to_the_end or not matches(wanted, got):
            frame = self._read()
            if frame is None or frame["type"] != "output":
                self._next += [frame] if frame else []
                break
            self._test.assertIn(frame["id"], self._ids)
            got[frame["stream"]] += frame["text"]
        return got

    def _end(self, status: int) -> None:
        if status == 0:
            self._guest.close()
        self._test.assertIsNone(self._read(), "a frame after the last")
        self._test.assertEqual(self._guest.status(), status)


def cut(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 2000 else text[:1000] + " … " + text[-1000:]


class Transcripts(unittest.TestCase):
    def test_replay(self) -> None:
        self.assertGreater(len(FILES), 12)
        for path in FILES:
            transcript = Transcript(path)
            if transcript.played_by == "host":
                continue
            order = json.loads(transcript.files.get("order", "null"))
            with self.subTest(path.stem), Guest(order=order) as guest:
                printed = Player(self, transcript, guest).play()
                for stream, text in printed.items():
                    self.assertTrue(matches(transcript.result.get(stream, "*"), text), (stream, cut(text)))

    def test_readable(self) -> None:
        for path in FILES:
            transcript = Transcript(path)
            self.assertIn(transcript.played_by, ("both", "guest", "host"))
            self.assertTrue(transcript.prose.strip(), path)
            self.assertIn(
                transcript.result["status"], ("ok", "error", "exit", "timeout", "cancelled", "memory_limit")
            )
            for side, line in transcript.lines:
                self.assertIn(side, ("host", "guest"), path)
                self.assertTrue(
                    isinstance(line, dict) or line.startswith(("@raw ", "@close", "@exit ")), path
                )

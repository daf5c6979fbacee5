"""Lines and frames, as both processes of the guest cut and make them."""

from __future__ import annotations

import json
import os
import socket
import tracemalloc
import unittest

from guest import wire


class Lines(unittest.TestCase):
    def test_cut_anywhere(self) -> None:
        data = b"one\n\ntwo three\nlast"
        for size in range(1, len(data) + 1):
            lines = wire.Lines(100)
            got = [line for i in range(0, len(data), size) for line in lines.feed(data[i : i + size])]
            self.assertEqual(got, [b"one", b"", b"two three"], size)

    def test_limit(self) -> None:
        for length, whole in ((998, True), (999, True), (1000, False), (5000, False)):
            for size in (1, 7, 300, 6000):
                with self.subTest(length=length, size=size):
                    line = bytes(97 + i % 26 for i in range(length))
                    lines, got = wire.Lines(1000), []
                    data = line + b"\nnext\n"
                    for i in range(0, len(data), size):
                        got += lines.feed(data[i : i + size])
                    self.assertEqual(got[1], b"next")
                    self.assertEqual(isinstance(got[0], wire.Overlong), not whole)
                    self.assertEqual(got[0], line if whole else line[:256])

    def test_what_is_above_the_limit_is_not_held(self) -> None:
        lines = wire.Lines(1000)
        for _ in range(1000):
            self.assertEqual(lines.feed(b"x" * 1000), [])
            self.assertLess(len(lines._begun), 1001)

    def test_a_line_in_small_pieces_costs_little_more_than_itself(self) -> None:
        lines = wire.Lines(wire.MAX_FRAME)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for i in range(50_000):
            lines.feed(b"%02d" % (i % 100))
        self.assertLess(tracemalloc.get_traced_memory()[0], 4 * 100_000)


class Outbox(unittest.TestCase):
    def test_all_comes_in_order_whatever_the_other_end_takes_at_a_time(self) -> None:
        """A pipe takes 64 KiB and then nothing; lines are many at once, of none, few and many bytes."""
        for sizes in ([0], [1] * 1000, [1 << 17, 3, 1 << 17], [i * 37 % 5000 for i in range(300)]):
            with self.subTest(lines=len(sizes), bytes=sum(sizes)):
                read, write = os.pipe()
                os.set_blocking(write, False)
                os.set_blocking(read, False)
                box, got = wire.Outbox(write), b""
                lines = [bytes([97 + i % 26]) * size for i, size in enumerate(sizes)]
                for line in lines:
                    box.push(line)
                for _ in range(1000):
                    box.flush()
                    got += wire.read_some(read, 1 << 20) or b""
                    self.assertEqual(box.size, sum(sizes) - len(got))
                    if not box.size:
                        break
                self.assertEqual(got, b"".join(lines))
                os.close(read)
                os.close(write)

    def test_frames_that_wait_go_in_one_write(self) -> None:
        """Each write wakes the engine's programs up, which compete with the code for the processors."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            box = wire.Outbox(ours.fileno())
            for line in (b"pong\n", b"started\n", b"done\n"):
                box.push(line)
            box.flush()
            self.assertEqual(theirs.recv(100), b"pong\nstarted\ndone\n")


class Frames(unittest.TestCase):
    def test_encode(self) -> None:
        for value in ({"a": [1, 2**63, -(2**63), 1.5, None, True, "é\u2028\n"]}, {"lone": "\ud800"}):
            line = wire.encode(value)
            self.assertEqual(line.count(b"\n"), 1)
            self.assertEqual(json.loads(line), value)
            line.decode()

    def test_encode_refuses_what_json_has_not(self) -> None:
        for value in (float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                wire.encode({"a": value})

    def test_decode_gives_only_objects(self) -> None:
        for line in (
            b"",
            b"1",
            b"[]",
            b'"x"',
            b"null",
            b"{",
            b'{"a":NaN}',
            b"\xff",
            b"{\x00}",
            b'{"a":' + b"[" * 100_000,
            '{"a":1}'.encode("utf-16"),
        ):
            self.assertIsNone(wire.decode(line), line[:20])
        self.assertEqual(wire.decode(b'{"a":1}'), {"a": 1})


class Outboxes(unittest.TestCase):
    def test_keeps_what_the_pipe_does_not_take(self) -> None:
        read, write = os.pipe()
        os.set_blocking(write, False)
        box = wire.Outbox(write)
        lines = [bytes([97 + i % 26]) * 50_000 for i in range(10)]
        for line in lines:
            box.push(line)
        got = b""
        while box.size:
            box.flush()
            got += os.read(read, 1 << 20)
        os.close(write)
        self.assertEqual(got, b"".join(lines))
        os.close(read)

"""What the supervisor makes of the child's requests, without a child."""

from __future__ import annotations

import json
import os
import socket
import unittest

from guest import wire
from guest.output import Output
from guest.requests import Requests
from guest.run import Run


class TakenTogether(unittest.TestCase):
    def test_output_comes_before_what_follows_it(self) -> None:
        """Also where the supervisor gets to run only when the child has said that it is warm and
        done all of its work.
        """
        host, to_host = socket.socketpair()
        child, to_child = socket.socketpair()
        out, err = os.pipe(), os.pipe()
        with host, to_host, child, to_child:
            for fd in (to_host.fileno(), to_child.fileno(), out[0], err[0]):
                os.set_blocking(fd, False)
            run = Run(os.getpid(), (False, ""), wire.Outbox(to_host.fileno()), wire.Outbox(to_child.fileno()))
            run.id, run.asked = "r", True
            output = Output(out[0], err[0], run.output)
            os.write(out[1], b"printed\n")
            for frame in (
                {"type": "warm"},
                {"type": "tool_call", "callId": "1", "providerName": "p", "safeToolName": "t", "input": {}},
            ):
                child.sendall(json.dumps(frame).encode() + b"\n")
            self.assertTrue(Requests(run, output).take())
            run.to_host.flush()
            frames = [json.loads(line) for line in host.recv(1 << 16).splitlines()]
            self.assertEqual([frame["type"] for frame in frames], ["ready", "started", "output", "tool_call"])
            self.assertEqual(frames[2]["text"], "printed\n")
            for fd in (*out, *err):
                os.close(fd)

"""Serves a stdio MCP server over Streamable HTTP on loopback, for test suites that speak HTTP alone.

Usage: carrier.py PORT COMMAND [ARGUMENT...]

Messages pass unchanged. A client of an older protocol gets a process for each session; clients of
2026-07-28, which has no sessions, share one process. The program ends, and with it all processes,
when its standard input does. It is a test's tool: it bounds nothing, and checks no
header but Host.
"""

from __future__ import annotations

import http.server
import json
import queue
import subprocess
import sys
import threading
import uuid
from typing import Any

MODERN = "2026-07-28"
# STATUS is what 2026-07-28 asks for in place of 200 where the answer is an error (basic/transports).
STATUS = {-32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
Message = dict[str, Any]


class Peer:
    """Peer is one server process and the HTTP responses that wait for its messages."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.Lock()
        self.waiting: dict[str, queue.Queue[Message | None]] = {}  # by request id, oldest first
        self.stream: queue.Queue[Message | None] = queue.Queue()  # for GET
        threading.Thread(target=self.read, daemon=True).start()

    def send(self, message: Message) -> None:
        assert self.process.stdin
        with self.lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def expect(self, ident: object) -> queue.Queue[Message | None]:
        answers: queue.Queue[Message | None] = queue.Queue()
        self.waiting[json.dumps(ident)] = answers
        return answers

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            self.route(message).put(message)
        for answers in [*self.waiting.values(), self.stream]:
            answers.put(None)

    def route(self, message: Message) -> queue.Queue[Message | None]:
        """route returns the response that the message belongs to, as far as messages say so."""
        if "id" in message and "method" not in message:
            return self.waiting.pop(json.dumps(message["id"]), self.stream)
        params = message.get("params") or {}
        listener = (params.get("_meta") or {}).get("io.modelcontextprotocol/subscriptionId")
        if listener is not None:
            return self.waiting.get(json.dumps(listener), self.stream)
        if message.get("method", "").endswith("list_changed") or not self.waiting:
            return self.stream
        return list(self.waiting.values())[-1]

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Carrier(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, command: list[str]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.command = command
        self.sessions: dict[str, Peer] = {}
        self.shared: Peer | None = None
        self.lock = threading.Lock()

    def peer(self, handler: Handler, message: Message) -> tuple[Peer | None, str]:
        """peer returns the process that the message is for, and the id of its session."""
        meta = (message.get("params") or {}).get("_meta") or {}
        modern = handler.headers.get("MCP-Protocol-Version", "") >= MODERN or any(
            key.startswith("io.modelcontextprotocol/protocolVersion") for key in meta
        )
        with self.lock:
            session = handler.headers.get("Mcp-Session-Id", "")
            if message.get("method") == "initialize" and not modern:
                session = uuid.uuid4().hex
                self.sessions[session] = Peer(self.command)
            if session or not modern and message.get("method") != "server/discover":
                return self.sessions.get(session), session
            self.shared = self.shared or Peer(self.command)
            return self.shared, ""

    def close(self) -> None:
        for peer in [*self.sessions.values(), *filter(None, [self.shared])]:
            peer.close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Carrier

    def parse_request(self) -> bool:
        """parse_request refuses a foreign Host: a page elsewhere may have had its name point here."""
        if not super().parse_request():
            return False
        name = self.headers.get("Host", "").rpartition(":")[0]
        if name not in ("127.0.0.1", "localhost"):
            self.send_error(403)
            return False
        return True

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        peer, session = self.server.peer(self, message)
        if peer is None:
            return self.answer(404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "no such session"}})
        if "method" not in message or "id" not in message:
            peer.send(message)
            return self.answer(202, None)
        answers = peer.expect(message["id"])
        peer.send(message)
        first = answers.get()
        if first is None or "method" not in first:
            error = (first or {}).get("error") or {}
            return self.answer(200 if session else STATUS.get(error.get("code"), 200), first, session)
        self.begin_events(session)
        while first is not None:
            if not self.event(first):
                if not session:  # where there are no sessions, hanging up cancels
                    params = {"requestId": message["id"]}
                    peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
                return
            if "method" not in first:
                return
            first = answers.get()

    def do_GET(self) -> None:
        peer = self.server.sessions.get(self.headers.get("Mcp-Session-Id", ""))
        if peer is None:
            return self.answer(405, None)
        self.begin_events("")
        while (message := peer.stream.get()) is not None and self.event(message):
            pass

    def do_DELETE(self) -> None:
        peer = self.server.sessions.pop(self.headers.get("Mcp-Session-Id", ""), None)
        if peer:
            peer.close()
        self.answer(204 if peer else 404, None)

    def answer(self, status: int, message: Message | None, session: str = "") -> None:
        body = b"" if message is None else json.dumps(message).encode()
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin_events(self, session: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()

    def event(self, message: Message) -> bool:
        """event reports whether the client still reads."""
        try:
            self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")
            self.wfile.flush()
        except OSError:
            return False
        return True

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    carrier = Carrier(int(sys.argv[1]), sys.argv[2:])
    threading.Thread(target=carrier.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{carrier.server_address[1]}/mcp", flush=True)
    sys.stdin.read()
    carrier.close()


if __name__ == "__main__":
    main()

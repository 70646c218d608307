"""A front of the S3 server on loopback (benchmarks/s3_server.py) that throttles, resets and loses answers."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Fault = Literal["throttle", "fail", "reset", "abort", "lose the answer", "cut the answer", "hang", "deny"]


_ANSWERS: dict[str, tuple[int, bytes]] = {
    "throttle": (503, b"<Error><Code>SlowDown</Code></Error>"),
    "fail": (500, b""),
    "deny": (403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"),
}


@dataclass
class Front:
    """Passes requests on, but those a fault is planned for.

    Attributes
    ----------
    behind : str
        Endpoint of the server.
    plan : callable
        Which fault meets a request, by method and path; None for none.
    met : list of (method, path, fault)
        In order.
    rewritten : callable
        The path that the server is asked for instead.
    """

    behind: str
    plan: Callable[[str, str], Fault | None] = lambda method, path: None
    met: list[tuple[str, str, Fault | None]] = field(default_factory=list)
    rewritten: Callable[[str], str] = lambda path: path

    def first(self, n: int, fault: Fault, *, method: str) -> None:
        """Let the next n requests of a method meet a fault."""
        left = [n]

        def plan(of: str, path: str) -> Fault | None:
            if of != method or not left[0]:
                return None
            left[0] -= 1
            return fault

        self.plan = plan
        self.met.clear()


@contextmanager
def front(behind: str) -> Iterator[tuple[Front, str]]:
    """Start a front of a server; yields it and its endpoint."""
    state = Front(behind)
    address = behind.removeprefix("http://")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = state.plan(self.command, self.path)
            state.met.append((self.command, self.path, fault))
            if fault == "reset":
                self.close_connection = True
                return
            if fault == "abort":  # the client's socket gets a reset (RST), not an orderly end
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
                return
            if fault in _ANSWERS:
                code, text = _ANSWERS[fault]
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                return
            if fault == "hang":
                time.sleep(3)
                self.close_connection = True
                return
            connection = http.client.HTTPConnection(address, timeout=30)
            # The host is part of what was signed.
            connection.request(self.command, state.rewritten(self.path), body, dict(self.headers.items()))
            response = connection.getresponse()
            content = response.read()
            connection.close()
            if fault == "lose the answer":
                self.close_connection = True
                return
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                    self.send_header(name, value)
            length = response.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", str(length or 0))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[: len(content) // 2] if fault == "cut the answer" else content)
            self.close_connection = fault == "cut the answer"

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield state, f"http://127.0.0.1:{running.server_port}"
    finally:
        running.shutdown()
        running.server_close()
        thread.join()

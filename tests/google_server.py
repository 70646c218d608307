"""What Google's XML interface asks of a client, before the S3 server on loopback, which knows no generations.

There is no server of Google's storage among the packages that can be had that knows this interface. It is that of S3,
but for conditions: an object has a generation, ``x-goog-if-generation-match`` names it, and 0 is an object that is not
there (https://cloud.google.com/storage/docs/xml-api/reference-headers). ETags are no condition.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from benchmarks.s3_server import ACCESS

_CONDITION = "x-goog-if-generation-match"
_UNSIGNED = "SignedHeaders=host, Signature=none"


def environment(port: int) -> dict[str, str]:
    """What driver and tasks need to reach it."""
    account = {"gcs_base_url": f"http://127.0.0.1:{port}", "disable_oauth": True, "client_email": ""}
    key = json.dumps({**account, "private_key": "", "private_key_id": ""})
    return {"GOOGLE_SERVICE_ACCOUNT_KEY": key, "GOOGLE_ALLOW_HTTP": "true"}


@contextmanager
def server(port: int, behind: str) -> Iterator[None]:
    """Start it before an S3 server, and stop it at the end."""
    generations: dict[str, int] = {}
    lock = threading.Lock()
    number = iter(range(1_700_000_000_000_000, 1_800_000_000_000_000))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            name = unquote(url.path)
            # Names come with their slashes encoded, which the server behind takes for another name.
            plain = f"{quote(name)}?{url.query}" if url.query else quote(name)
            writes = (self.command == "PUT" and not url.query) or (self.command == "POST" and "uploadId" in url.query)
            with lock:
                condition = self.headers.get(_CONDITION)
                if condition is not None and int(condition) != generations.get(name, 0):
                    self.reply(412, {}, b"<Error><Code>PreconditionFailed</Code></Error>")
                    return
                status, headers, content = passed(self.command, plain, body, dict(self.headers.items()))
                if writes and status == 200:
                    generations[name] = next(number)
                if self.command == "DELETE" and not url.query:
                    status = 404 if generations.pop(name, None) is None else status
                if name in generations:
                    headers["x-goog-generation"] = str(generations[name])
            self.reply(status, headers, content)

        def reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for header, value in headers.items():
                self.send_header(header, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

    def passed(method: str, path: str, body: bytes, given: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        # The token is an empty one; the server behind looks who asks, and at no signature.
        others = ("x-goog-if", "host", "authorization")
        kept = {name: value for name, value in given.items() if not name.lower().startswith(others)}
        kept["Authorization"] = f"AWS4-HMAC-SHA256 Credential={ACCESS}/20260101/us-east-1/s3/aws4_request, {_UNSIGNED}"
        metadata = {name.replace("x-goog-meta-", "x-amz-meta-"): value for name, value in kept.items()}
        connection = http.client.HTTPConnection(behind.removeprefix("http://"), timeout=30)
        try:
            connection.request(method, path, body, metadata)
            response = connection.getresponse()
            content = response.read()
            dropped = ("connection", "transfer-encoding", "date", "server")
            dropped += () if method == "HEAD" else ("content-length",)
            headers = {
                name.replace("x-amz-meta-", "x-goog-meta-"): value
                for name, value in response.getheaders()
                if name.lower() not in dropped
            }
            return response.status, headers, content
        finally:
            connection.close()

    running = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        running.shutdown()
        running.server_close()
        thread.join()

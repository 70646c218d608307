"""An S3 server on loopback with one bucket, for benchmarks and tests; it keeps what it is given in memory."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "privrisk"
ACCESS, SECRET = "loopback-user", "loopback-secret-5d1f"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}
"""What driver and tasks need to reach it, but its endpoint."""


class ServerError(RuntimeError):
    """The server did not come up."""


@contextmanager
def server(port: int) -> Iterator[str]:
    """Start a server with one bucket and stop it at the end.

    Yields
    ------
    str
        Its endpoint.

    Raises
    ------
    ServerError
        If it does not come up in a minute.
    """
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        until = time.monotonic() + 60
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request("PUT", f"/{BUCKET}")
                if connection.getresponse().status == http.HTTPStatus.OK:
                    break
            except OSError:
                pass
            finally:
                connection.close()
            if process.poll() is not None or time.monotonic() > until:
                raise ServerError("The S3 server did not come up; is moto[s3] installed?")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)

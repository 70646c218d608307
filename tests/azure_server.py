"""Azurite, a server of Azure's blob storage, on loopback with one container; it keeps what it is given in memory."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PLACE = Path(os.environ.get("PRIVRISK_AZURITE", Path(sys.prefix, "azurite")))
"""Where ``make .venv/azurite`` puts it."""

CONTAINER = "privrisk"
ACCOUNT = "devstoreaccount1"
SECRET = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of the account that every Azurite has; its documentation names both."""

ENVIRONMENT = {
    "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
    "AZURE_STORAGE_ACCOUNT_KEY": SECRET,
    "AZURE_STORAGE_USE_EMULATOR": "true",
    "AZURE_ALLOW_HTTP": "true",
}
"""What driver and tasks need to reach it, but its address (``AZURITE_BLOB_STORAGE_URL``)."""


def address(port: int) -> str:
    """What ``AZURITE_BLOB_STORAGE_URL`` holds."""
    return f"http://127.0.0.1:{port}"


@contextmanager
def server(port: int) -> Iterator[str]:
    """Start it, and stop it at the end; where it is not there, the test is skipped, or fails if it is required."""
    program = PLACE / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        reason = f"Azurite is not in {PLACE} (make .venv/azurite)"
        if "azurite" in os.environ.get("PRIVRISK_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    command = ["node", str(program), "--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 60
            while not _made(port):
                assert process.poll() is None, "Azurite ended at its start"
                assert time.monotonic() < until, "Azurite did not come up"
                time.sleep(0.1)
            yield address(port)
        finally:
            process.terminate()


def _made(port: int) -> bool:
    """Make the container, by a request signed with the account's key."""
    headers = {
        "x-ms-date": dt.datetime.now(dt.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "x-ms-version": "2021-08-06",
    }
    signed = "PUT" + "\n" * 12 + "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    signed += f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(SECRET), signed.encode(), hashlib.sha256)).decode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        path = f"/{ACCOUNT}/{CONTAINER}?restype=container"
        authorized = {**headers, "Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
        connection.request("PUT", path, headers=authorized)
        return connection.getresponse().status == http.HTTPStatus.CREATED
    except OSError:
        return False
    finally:
        connection.close()

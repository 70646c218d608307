"""A real PostgreSQL server for tests: its own data directory, its own port, gone afterwards."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

OWNER = "owner"


def binaries() -> Path | None:
    """Directory of initdb and postgres, the newest version first; Debian keeps them off the PATH."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    return next((path for path in places if (path / "initdb").exists() and (path / "postgres").exists()), None)


def account() -> dict[str, Any]:
    """Whom the server runs as: it refuses root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise LookupError


@dataclass
class Server:
    """A running server.

    Attributes
    ----------
    password : str
        Of the owner, a superuser; connections by TCP need it.
    """

    directory: Path
    programs: Path
    port: int
    password: str
    process: subprocess.Popen[bytes] | None = None
    names: Iterator[int] = field(default_factory=count)

    def url(self, database: str, role: str = OWNER, password: str | None = None) -> str:
        """Return a ledger.url."""
        return f"postgresql+psycopg://{role}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str, **options: Any) -> Any:
        """Return a psycopg connection of the owner, committing each statement, with the ledger on its search path."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=OWNER, password=self.password, dbname=database, autocommit=True,
            options="-c search_path=privrisk_ledger,public", **options,
        )  # fmt: skip

    def database(self) -> str:
        """Create an empty database; return its name."""
        name = f"d{next(self.names)}"
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'")
        return name

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.directory,
            "max_connections": 40, "shared_buffers": "16MB", "fsync": "off", "logging_collector": "off",
        }  # fmt: skip
        command = [self.programs / "postgres", "-D", self.directory / "data"]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory, **account())
        import psycopg

        limit = time.monotonic() + 60
        while True:
            try:
                self.connect("postgres").close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > limit:
                    raise RuntimeError((self.directory / "log").read_text()[-2000:]) from None
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server, and wait until nothing listens: SIGINT cuts connections off, SIGQUIT is a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
            self.process = None
            # A process that a crash leaves for a moment may still hold the port, and accept what it cannot serve.
            limit = time.monotonic() + 10
            while time.monotonic() < limit:
                try:
                    socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                except ConnectionRefusedError:
                    return
                except OSError:
                    pass
                time.sleep(0.02)
            raise RuntimeError("the server ended, and something still listens at its port")


@contextmanager
def server(programs: Path) -> Iterator[Server]:
    """Run a server in a temporary directory."""
    directory = Path(tempfile.mkdtemp(prefix="privrisk-postgresql-"))
    identity = account()
    try:
        password = secrets.token_hex(8)
        secret = directory / "password"
        secret.write_text(password)
        if identity:
            for path in (directory, secret):
                os.chown(path, identity["user"], identity["group"])
        command = [
            programs / "initdb",
            "-D",
            directory / "data",
            "-U",
            OWNER,
            "--auth=scram-sha-256",
            "--pwfile",
            secret,
        ]
        command += ["-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd=directory, **identity)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        running = Server(directory, programs, port, password)
        running.start()
        try:
            yield running
        finally:
            # Nothing of it is kept, so that it need not write anything.
            running.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(directory, ignore_errors=True)

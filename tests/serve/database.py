"""A PostgreSQL of our own, on loopback, to be asked, restarted and thrown away."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Any

import psycopg


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _tool(name: str) -> str:
    found = shutil.which(name) or next(
        (str(p) for p in sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)), None
    )
    assert found, f"{name} is needed: install PostgreSQL (Debian: postgresql)"
    return found


class Server:
    """Runs while the ``with`` lasts; it refuses to run as root, so another user runs it then."""

    def __init__(self) -> None:
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="armwise-pg-"))
        user = pwd.getpwuid(os.getuid()).pw_name
        self._become: dict[str, Any] = {}
        if os.getuid() == 0:
            user = next(u for u in ("postgres", "nobody") if any(p.pw_name == u for p in pwd.getpwall()))
            entry = pwd.getpwnam(user)
            os.chown(self._folder, entry.pw_uid, entry.pw_gid)
            self._become = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        port, self._data = free_port(), str(self._folder / "data")
        self.url = f"postgresql://{user}@127.0.0.1:{port}/"
        self._options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder} -c max_connections=60"
        )
        self._run(_tool("initdb"), "-D", self._data, "-U", user, "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8")

    def _run(self, *words: str) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self._folder}
        subprocess.run(words, check=True, **quiet, **self._become)  # type: ignore[call-overload]

    def control(self, *words: str) -> None:
        """``pg_ctl``, such as ``restart -m immediate``."""
        log = str(self._folder / "log")
        self._run(_tool("pg_ctl"), "-D", self._data, "-o", self._options, "-w", "-t", "60", "-l", log, *words)

    def signal(self, number: int) -> None:
        """Send a signal to the server and all of its sessions: SIGSTOP lets it hang, SIGCONT lets it go on."""
        main = int((pathlib.Path(self._data) / "postmaster.pid").read_text().split()[0])
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if main in (parent, int(folder.name)):
                    os.kill(int(folder.name), number)

    def new_database(self) -> str:
        name = f"test{time.time_ns()}"
        with psycopg.connect(self.url + "postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url + name

    def __enter__(self) -> Server:
        self.control("start")
        return self

    def __exit__(self, *error: object) -> None:
        self.control("stop", "-m", "immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

"""A PostgreSQL of our own, on loopback, to be asked, restarted and thrown away."""

from __future__ import annotations

import atexit
import contextlib
import functools
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


def _folder() -> tuple[pathlib.Path, str, dict[str, Any]]:
    """A new folder, the user it belongs to, and how to become that user: PostgreSQL refuses to run as root."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="armwise-pg-"))
    if os.getuid() != 0:
        return folder, pwd.getpwuid(os.getuid()).pw_name, {}
    user = next(u for u in ("postgres", "nobody") if any(p.pw_name == u for p in pwd.getpwall()))
    entry = pwd.getpwnam(user)
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return folder, user, {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(words: list[str], folder: pathlib.Path, become: dict[str, Any]) -> None:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    subprocess.run(words, check=True, **quiet, **become)  # type: ignore[call-overload]


def _initdb(data: str, name: str) -> list[str]:
    return [_tool("initdb"), "-D", data, "-U", name, "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"]


@functools.cache
def _empty() -> str:
    """The data of a server that has never run: made once, since that takes as long as many a test, then copied."""
    folder, user, become = _folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _run(_initdb(data := str(folder / "data"), user), folder, become)
    return data


class Server:
    """Runs while the ``with`` lasts; where the tests run as root, another user runs it.

    With ``room`` it has a disk of its own, of so many megabytes, for ``fill``: whoever mounts that must be root.
    """

    def __init__(self, room: int = 0) -> None:
        self._folder, user, self._become = _folder()
        port, self._data = free_port(), str(self._folder / "data")
        self.url = f"postgresql://{user}@127.0.0.1:{port}/"
        self._options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder} -c max_connections=60"
        )
        self._room, self._filler = room, pathlib.Path(self._data) / "filler"
        if room:  # a log in short pieces, so that a full disk stops it soon
            os.mkdir(self._data)
            mounted = f"size={room}m,mode=0700,uid={self._become.get('user', os.getuid())}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", mounted, "tmpfs", self._data], check=True)
            self._options += " -c min_wal_size=2MB -c max_wal_size=8MB"
            words = [*_initdb(self._data, user), "--wal-segsize=1"]
        else:
            words = ["cp", "-a", _empty(), self._data]
        _run(words, self._folder, self._become)

    def control(self, *words: str) -> None:
        """``pg_ctl``, such as ``restart -m immediate``."""
        log = str(self._folder / "log")
        options = ["-D", self._data, "-o", self._options, "-w", "-t", "60", "-l", log]
        _run([_tool("pg_ctl"), *options, *words], self._folder, self._become)

    def fill(self, leave: int = 0) -> None:
        """Take all that is left of its disk but for some bytes: with less than a piece of its log needs, that ends."""
        with self._filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while (room := shutil.disk_usage(self._data).free - leave) > 0:
                file.write(b"\0" * min(room, 1 << 20))

    def free(self) -> None:
        """Give it back."""
        self._filler.unlink(missing_ok=True)

    @property
    def runs(self) -> bool:
        """Whether there is a server: one whose log cannot be written ends itself."""
        try:
            os.kill(self._main, 0)
        except (OSError, ValueError, IndexError):  # there is no file, nothing in it yet, or no such process any more
            return False
        return True

    @property
    def _main(self) -> int:
        return int((pathlib.Path(self._data) / "postmaster.pid").read_text().split()[0])

    def signal(self, number: int) -> None:
        """Send a signal to the server and all of its sessions: SIGSTOP lets it hang, SIGCONT lets it go on."""
        main = self._main
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
        if self.runs:
            self.control("stop", "-m", "immediate")
        if self._room:
            subprocess.run(["umount", self._data], check=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def lose(url: str, lost: bool = True) -> None:
    """Let nobody connect to a database any more, and end the sessions that there are; or let them again."""
    base, _, name = url.rpartition("/")
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {not lost}")
        if lost:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))

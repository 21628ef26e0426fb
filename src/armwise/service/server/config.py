"""The configuration: a TOML file, or nothing at all."""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec

from armwise.features.encoding.arms import check_id
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.engine.interface import ServedEngine
from armwise.service.journal.databases.database import Database
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation
from armwise.service.model.merged_views import check_merges
from armwise.service.sharding.sharded_engine import ShardedEngine
from armwise.service.web.keys import Key
from armwise.service.web.logging import check_level

_POSTGRES = ("postgresql://", "postgres://")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::\d{1,5})?")


class Config(msgspec.Struct, forbid_unknown_fields=True):
    """The settings of the service."""

    listen: str = "127.0.0.1:8484"
    storage: str | list[str] = "armwise-data"  # a folder, or postgresql://..., or several of these
    applications: dict[str, Application] = msgspec.field(default_factory=lambda: {"default": Application()})
    adopt: bool = False  # serve applications that the storage has as it has them, whatever is said of them here
    keys: list[Key] = []
    max_body: int = 1_048_576
    max_exports: int = 8  # under way at once; each has a session with every database
    send_timeout: float = 30.0  # seconds within which a reader must take 64 KiB of what waits for it
    snapshot_every: float = 30.0
    retention: float = 0.0  # days after which decisions that are settled go; 0: never
    log_level: str = "info"

    def __post_init__(self) -> None:
        if not self.applications:
            raise ValueError("applications must name at least one application")
        _check_address(self.listen)
        _check_keys(self.keys, self.applications)
        check_storage(self.storage)
        if not 0.0 < self.snapshot_every < math.inf:
            raise ValueError(f"snapshot_every must be seconds above 0, got {self.snapshot_every}")
        if not 0.0 <= self.retention <= 36500.0:
            raise ValueError(f"retention must be a number of days from 0 (for ever) to 36500, got {self.retention}")
        check_level(self.log_level)
        if not self.keys and not is_loopback(self.host):
            raise ValueError(
                f"listen is {self.listen}, which others can reach, but there are no keys: add [[keys]] "
                "(armwise serve --new-key makes one) or listen on 127.0.0.1"
            )
        if self.max_body < 1024:
            raise ValueError(f"max_body must be at least 1024 bytes, got {self.max_body}")
        if self.max_exports < 1:
            raise ValueError(f"max_exports must be at least 1, got {self.max_exports}")
        if not 0.0 < self.send_timeout < math.inf:
            raise ValueError(f"send_timeout must be seconds above 0, got {self.send_timeout}")

    @property
    def host(self) -> str:
        """The address part of ``listen``."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port part of ``listen``."""
        return int(self.listen.rpartition(":")[2])

    def creations(self) -> dict[str, Creation]:
        """The applications as the engine wants them."""
        return {name: application.creation() for name, application in self.applications.items()}

    def stores(self) -> list[Database]:
        """The storage, not yet connected to."""
        return [open_store(each) for each in ([self.storage] if isinstance(self.storage, str) else self.storage)]

    def engine(self) -> ServedEngine:
        """Make the engine, or for a list of databases the sharded one."""
        options: Any = {"snapshot_every": self.snapshot_every, "adopt": self.adopt}
        if isinstance(self.storage, str):
            return Engine(self.stores()[0], self.creations(), **options)
        return ShardedEngine(self.stores(), self.creations(), **options)


def _check_address(listen: str) -> None:
    host, colon, port = listen.rpartition(":")
    whole = port.isascii() and port.isdigit() and int(port) <= 65535
    if not colon or not whole or host.startswith("[") != host.endswith("]"):
        raise ValueError(f"listen must be address:port, such as 127.0.0.1:8484, got {listen!r}")


def _check_keys(keys: Sequence[Key], applications: Collection[str]) -> None:
    for i, key in enumerate(keys):
        for other in keys[:i]:
            if other.name == key.name:
                raise ValueError(f"two keys have the name {key.name!r}")
            if other.sha256 == key.sha256:
                raise ValueError(f"the keys {other.name!r} and {key.name!r} have the same sha256")
        for name in key.applications:
            if name not in applications:
                raise ValueError(
                    f"key {key.name!r} is for the application {name!r}, but there is only {', '.join(applications)}"
                )


def open_store(storage: str) -> Database:
    """A store from a folder, a journal file, or a PostgreSQL URL."""
    check_storage(storage)
    if storage.startswith(_POSTGRES):
        from armwise.service.journal.databases.postgres import Postgres

        return Postgres(storage)
    path = Path(storage)
    return SQLite(path if path.suffix == ".db" else path / "journal.db")


def check_storage(storage: str | list[str]) -> None:
    """ValueError for a URL of something else; its message leaves out what may be a password."""
    if not isinstance(storage, str):
        for each in storage:
            check_storage(each)
            if not each.startswith(_POSTGRES):
                raise ValueError("storage: in a list every database must be postgresql://..., since processes share it")
        if not storage or len({each.partition("://")[2].rpartition("@")[2] for each in storage}) < len(storage):
            raise ValueError("storage: a list must name at least one database, and each once")
        return
    scheme, found, _ = storage.partition("://")
    if not storage or (found and not storage.startswith(_POSTGRES)):
        got = f"{scheme}://..." if found else "nothing"
        raise ValueError(f"storage must be a folder, a .db file or postgresql://..., got {got}")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address; a name other than localhost could be anything."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_loopback(authority: str) -> bool:
    """Whether a ``Host`` header, or an ``Origin`` after its scheme, names this machine as only it does; any port."""
    found = _AUTHORITY.fullmatch(authority)
    return found is not None and is_loopback(found[1].strip("[]").lower())


def load_config(path: str | Path) -> Config:
    """Read a TOML file; ValueError says what is wrong with it."""
    try:
        text = Path(path).read_text("utf-8")
    except FileNotFoundError:
        expected = "expected a TOML file, or a folder that a Decider or a service wrote"
        raise FileNotFoundError(f"there is no {path}: {expected}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected a TOML file, which is UTF-8 text; byte {error.start} is not") from None
    try:
        raw = tomllib.loads(text)
        if isinstance(described := raw.get("applications"), dict):
            raw["applications"] = {name: _application(name, table) for name, table in described.items()}
        config: Config = _converted(raw, Config)
        if not isinstance(config.storage, str):
            for name, made in config.creations().items():
                check_merges(name, made)
        return config
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def _application(name: str, table: Any) -> Application:
    """One application of the file, built once to see that it can be: before anything is stored."""
    try:
        check_id("the name", name)
        application: Application = _converted(table, Application)
        application.check()
    except ValueError as error:
        raise ValueError(f"applications.{name}: {error}") from None
    return application


def _converted(value: Any, kind: Any, place: str = "") -> Any:
    """A value of the file as a setting's type, part by part, so that an error names the place."""
    if isinstance(kind, UnionType):  # the member that a list or a table could be
        kind = next((each for each in get_args(kind) if get_origin(each) is type(value)), kind)
    if get_origin(kind) is list and isinstance(value, list):
        return [_converted(each, get_args(kind)[0], f"{place}[{i}]") for i, each in enumerate(value)]
    if get_origin(kind) is dict and isinstance(value, dict):
        return {name: _converted(each, get_args(kind)[1], f"{place}.{name}") for name, each in value.items()}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        types = {field.name: field.type for field in msgspec.structs.fields(kind)}
        if strange := [name for name in value if name not in types]:
            raise ValueError(_at(place, _unknown(strange[0])))
        value = {name: _converted(each, types[name], f"{place}.{name}") for name, each in value.items()}
    try:
        return msgspec.convert(value, kind, strict=False)
    except ValueError as error:
        raise ValueError(_at(place, str(error))) from None


def _at(place: str, reason: str) -> str:
    """A reason with its place in front, where that is not the whole."""
    return f"{place.lstrip('.')}: {reason}" if place else reason


def _unknown(name: str) -> str:
    """The message for an unknown name, with the known name that is nearest."""
    known = [known for kind in (Config, Application, Key) for known in kind.__struct_fields__]
    near = difflib.get_close_matches(name, known, 1)
    return f"there is no setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")

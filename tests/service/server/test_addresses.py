"""Addresses, storage and the greeting of the server."""

from __future__ import annotations

import pytest

from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.server.config import Config, check_storage, is_loopback, load_config, names_loopback, open_store
from armwise.service.server.run import greeting
from armwise.service.sharding.sharded_engine import ShardedEngine


def test_the_defaults_listen_on_this_machine_alone() -> None:
    config = Config()
    assert (config.host, config.port, list(config.creations())) == ("127.0.0.1", 8484, ["default"])
    assert Config(listen="[::1]:80").host == "::1"


def test_several_databases_make_a_sharded_engine() -> None:
    assert isinstance(Config().engine(), Engine)
    assert isinstance(Config(storage=["postgresql://host/a"]).engine(), ShardedEngine)
    for store, path in (
        (Config().stores()[0], "armwise-data/journal.db"),
        (open_store("elsewhere"), "elsewhere/journal.db"),
    ):
        assert isinstance(store, SQLite) and store.path == path


def test_a_storage_of_another_kind_is_refused_without_its_password() -> None:
    with pytest.raises(ValueError) as refused:
        check_storage("postgresq://user:secret@host/name")
    assert str(refused.value) == "storage must be a folder, a .db file or postgresql://..., got postgresq://..."
    with pytest.raises(FileNotFoundError, match=r"there is no /no/such\.toml: expected a TOML file"):
        load_config("/no/such.toml")


def test_only_a_name_of_this_machine_is_loopback() -> None:
    assert is_loopback("127.0.0.1")
    assert not any(is_loopback(name) for name in ("0.0.0.0", "example.org", ""))
    assert all(names_loopback(text) for text in ("localhost:8484", "[::1]", "127.0.0.1:80"))
    assert not any(names_loopback(text) for text in ("evil.example", "localhost.evil", "localhost:80@evil"))


def test_the_greeting_asks_for_a_decision_among_the_applications_arms() -> None:
    lines = greeting("http://127.0.0.1:8484", keyed=False, arms=["x", "y"]).splitlines()
    assert lines[0] == "armwise is serving on http://127.0.0.1:8484 (stop with Ctrl-C). Ask for a decision:"
    assert lines[1].endswith("""/v1/decisions -d '{"context": {"hour": 9}, "arms": ["x", "y"]}'""")
    assert "Bearer KEY" in greeting("http://127.0.0.1:8484", keyed=True)

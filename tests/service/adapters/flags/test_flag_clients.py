"""OpenFeature's own SDKs and OFREP providers, unmodified, against a service on loopback."""

from __future__ import annotations

import fcntl
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import openfeature.api
import pytest
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.track import TrackingEventDetails

from armwise.service.engine.application import Application
from armwise.service.experiments.definition import Definition
from armwise.service.experiments.hosted import create
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest
from tests.service.serving import Running

sys.path.insert(0, str(Path(__file__).parents[4] / "examples" / "flags"))
from tracking import Tracking, TrackingProvider

USERS = 120  # python -m benchmarks.edges has 5,000, and clicks of 10 % against 30 %
HEADERS = {"X-API-Key": "secret"}
FLAGS = {
    "banner": Application(variants={"off": False, "on": True}, window=3600.0),
    "words": Application(agent={"class": "UCB1", "n_arms": 2}, arms=["short", "long"]),
    "price": Application(variants={"low": 1.5, "high": 2.5}),
    "layout": Application(variants={"wide": {"columns": 3}, "narrow": {"columns": 1}}),
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    keys = [
        Key(name="site", sha256=digest("secret"), roles=["decide", "reward"]),
        Key(name="words", sha256=digest("words"), roles=["decide"], applications=["words"]),
    ]
    running = Running(Service(Config(storage=str(tmp_path / "data"), keys=keys, applications=FLAGS)))
    yield running
    openfeature.api.shutdown()
    openfeature.api.clear_hooks()
    running.stop()


def decisions(service: Running) -> int:
    [engine] = service.service.engine.each
    journal = engine.reading.journal
    [(n,)] = journal.connection.execute("SELECT count(*) FROM decisions WHERE app = 'banner'")
    journal.connection.wait_until_durable()
    return int(n)


def learnt(service: Running, shown: list[int], users: int) -> None:
    """One durable decision per user, and of the last third most see the better variant.

    The rates are .05 and .6, the floor .1: who learns shows the better one in about .95 of the decisions, who does not
    in half of them, of 40 users in more than 29 with a chance of 1 in 1,000.
    """
    assert len(shown) == users and decisions(service) == users
    last = shown[-users // 3 :]
    assert sum(last) / len(last) > 0.725


def test_python_sdk(service: Running) -> None:
    openfeature.api.set_provider(OFREPProvider(service.url, headers_factory=lambda: HEADERS))
    tracking = Tracking(service.url, HEADERS)
    openfeature.api.add_hooks([tracking])
    client, chance, shown = openfeature.api.get_client(), random.Random(3), []
    for i in range(USERS):
        context = EvaluationContext(f"user {i}", {"device": chance.choice(["phone", "tv"])})
        found = client.get_boolean_details("banner", False, context)
        assert found.reason == "SPLIT" and found.variant == ("on" if found.value else "off")
        shown.append(int(found.value))
        if chance.random() < (0.6 if found.value else 0.05):
            tracking.track("click", f"user {i}", flag="banner")
        if i % 20 == 0:  # in another context, later: the unit keeps what it got
            again = client.get_boolean_details("banner", False, EvaluationContext(f"user {i}", {"device": "watch"}))
            assert again.value == found.value and again.flag_metadata == found.flag_metadata
    learnt(service, shown, USERS)


def test_track_of_the_python_sdk_reaches_the_flag(service: Running, caplog: pytest.LogCaptureFixture) -> None:
    provider = OFREPProvider(service.url, headers_factory=lambda: HEADERS)
    openfeature.api.set_provider(TrackingProvider(provider, Tracking(service.url, HEADERS)))
    client, one = openfeature.api.get_client(), EvaluationContext("one")
    decision = str(client.get_float_details("price", 0.0, one).flag_metadata["decision"])
    client.track("purchase", one, TrackingEventDetails(0.25, {"flag": "price"}))
    assert service.service.engine.find("price", decision)[2].value == 0.25
    assert not caplog.records
    client.track("purchase", EvaluationContext(), TrackingEventDetails(0.25, {"flag": "price"}))
    client.track("purchase", EvaluationContext("two"), TrackingEventDetails(attributes={"flag": "price"}))
    assert [("TARGETING_KEY_MISSING" in text, "no decision" in text) for text in caplog.messages] == [
        (True, False),
        (False, True),
    ]


def test_an_exposure_that_is_not_taken_keeps_nobody_from_the_variant(
    service: Running, caplog: pytest.LogCaptureFixture
) -> None:
    decides = {"X-API-Key": "words"}  # a key that may not track
    openfeature.api.set_provider(OFREPProvider(service.url, headers_factory=lambda: decides))
    openfeature.api.add_hooks([Tracking(service.url, decides), Tracking("http://127.0.0.1:9", timeout=0.5)])
    for i in range(3):
        found = openfeature.api.get_client().get_string_details("words", "none", EvaluationContext(f"user {i}"))
        assert found.value in ("short", "long") and found.error_code is None
    assert sum("exposure was not tracked" in text for text in caplog.messages) == 6


def test_python_sdk_gets_every_type_and_error(service: Running) -> None:
    openfeature.api.set_provider(OFREPProvider(service.url, headers_factory=lambda: HEADERS))
    client, one = openfeature.api.get_client(), EvaluationContext("one")
    assert client.get_string_value("words", "none", one) in ("short", "long")
    assert client.get_float_value("price", 0.0, one) in (1.5, 2.5)
    assert client.get_object_value("layout", {}, one) in ({"columns": 3}, {"columns": 1})
    test = create(service.service.engine, "colour", Definition.read({"control": False, "blue": True}, "buy"))
    assigned = client.get_boolean_details("colour", False, one)
    assert assigned.reason == "SPLIT" and assigned.variant == test.assign([("one", {})], False)[0]
    test.stop("blue")
    stopped = client.get_boolean_details("colour", False, one)
    assert (stopped.value, stopped.reason) == (True, "STATIC")
    for found, code in (
        (client.get_boolean_details("nothing", True, one), ErrorCode.FLAG_NOT_FOUND),
        (client.get_boolean_details("banner", True, EvaluationContext()), ErrorCode.TARGETING_KEY_MISSING),
        (
            client.get_boolean_details("banner", True, EvaluationContext(None, {"x": 1})),
            ErrorCode.TARGETING_KEY_MISSING,
        ),
        (client.get_boolean_details("words", True, one), ErrorCode.TYPE_MISMATCH),
    ):
        assert found.value is True and found.error_code == code
    openfeature.api.set_provider(OFREPProvider(service.url, headers_factory=lambda: {"X-API-Key": "words"}))
    assert client.get_string_value("words", "none", one) in ("short", "long")
    assert client.get_boolean_details("banner", True, one).error_message == "forbidden"
    openfeature.api.set_provider(OFREPProvider(service.url))
    assert client.get_boolean_details("banner", True, one).error_message == "unauthorized"


@pytest.fixture(scope="session")
def npm_folder(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The npm packages, installed once, into pytest's cache."""
    if not shutil.which("npm"):
        pytest.fail("npm is needed to try the npm clients: install nodejs and npm")
    cache = getattr(pytestconfig, "cache", None)
    folder = Path(cache.mkdir("npm-flags") if cache else tmp_path_factory.mktemp("npm-flags"))
    source = Path(__file__).parent / "npm" / "package.json"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted, installed = source.read_text(), folder / "installed.json"
        if not installed.exists() or installed.read_text() != wanted:
            shutil.copy(source, folder)
            command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            installed.write_text(wanted)
    return folder


def test_npm_sdk(service: Running, npm_folder: Path) -> None:
    here = Path(__file__).parent
    tracking = here.parents[3] / "examples" / "flags" / "tracking.mjs"
    given = json.dumps({"users": USERS, "seed": 7, "headers": HEADERS, "rates": [0.05, 0.6]})
    command = ["node", str(here / "npm" / "loop.mjs"), service.url, str(tracking), given]
    done = subprocess.run(command, cwd=npm_folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    learnt(service, told["shown"], USERS)
    words, price, layout, nothing, nobody, unheard = told["typed"]
    assert unheard["value"] in ("short", "long") and "exposure was not tracked" in done.stderr
    assert service.service.engine.find("price", price["flagMetadata"]["decision"])[2].value == 0.25
    assert words["value"] in ("short", "long") and words["reason"] == "SPLIT" and words["variant"] == words["value"]
    assert price["value"] in (1.5, 2.5) and layout["value"] in ({"columns": 3}, {"columns": 1})
    assert (nothing["value"], nothing["errorCode"]) == (True, "FLAG_NOT_FOUND")
    assert (nobody["value"], nobody["errorCode"]) == (True, "TARGETING_KEY_MISSING")

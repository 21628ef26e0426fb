"""What earlier versions wrote is loaded, replayed and continued; see ``record``.

Each folder beside this file is a version. The recorder itself is tested on files that it records now.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.core.policy_document import Policy
from armwise.offline.logs.log import Log
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.journal import Journal
from armwise.service.log.export_journal import FORMATS, pieces
from armwise.service.log.verify import verify
from armwise.service.server.config import open_store
from tests.golden import record

VERSIONS = sorted(path for path in Path(__file__).parent.iterdir() if (path / "journal.zip").exists())
CHANGED = (
    "What armwise {version} wrote is no longer read as it was written: a format changed. Write a migration that this "
    "file proves (docs/policy.md); only before {version} is released: python -m tests.golden.record"
)


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def covers(now: Any, then: Any, where: str = "") -> None:
    """Assert that all that was recorded is there now; fields may have been added, last bits may differ."""
    if isinstance(then, dict):
        assert isinstance(now, dict), f"{where}: {now!r:.80} instead of {then!r:.80}"
        for name, value in then.items():
            assert name in now, f"{where}: the field {name} is gone"
            covers(now[name], value, f"{where}.{name}")
    elif isinstance(then, list):
        assert isinstance(now, list) and len(now) == len(then), f"{where}: {now!r:.80} instead of {then!r:.80}"
        for k, (mine, theirs) in enumerate(zip(now, then)):
            covers(mine, theirs, f"{where}[{k}]")
    elif isinstance(then, float) and isinstance(now, int | float):
        assert np.isclose(now, then, rtol=1e-7, atol=1e-9), f"{where}: {now!r} instead of {then!r}"
    else:
        assert now == then, f"{where}: {now!r:.80} instead of {then!r:.80}"


# ---------------------------------------------------------------------- what is checked of a version


def models(folder: Path, scratch: Path) -> None:
    """Every model file loads, and goes on as it did."""
    expected = read(folder, "models.json")
    with zipfile.ZipFile(folder / "models.zip") as archive:
        assert {f"{name}.aw" for name in expected} == set(archive.namelist())
        for name, then in expected.items():
            covers(record.go_on(saving.loads(archive.read(f"{name}.aw"), name)), then, name)


def journal(folder: Path, scratch: Path) -> None:
    """The journal is verified and exported unopened, opened, says what it said, and takes more."""
    with zipfile.ZipFile(folder / "journal.zip") as archive:
        archive.extractall(scratch)
    path, then = scratch / "journal.db", read(folder, "journal.json")
    connection = SQLite(path).connect_reading()
    try:
        sound(Journal(connection))
        for kind, rows in EXPORTS.items():
            now = rows(b"".join(pieces(Journal(connection), "shop", kind)))
            covers(now, rows((folder / f"export.{kind}").read_bytes()), f"the export as {kind}")
    finally:
        connection.close()
    clock = [record.NOW + 1e6]
    engine = Engine(SQLite(path), dict(record.APPS), clock=lambda: clock[0], adopt=True)
    engine.start()
    try:
        for app, model in then["models"].items():
            assert [engine.models[app].lessons, engine.models[app].version] == model, f"{app} is another model"
        covers(record.describe(engine)["decisions"], then["decisions"], "the decisions")
        covers(record.verdict(engine), then["experiment"], "the experiment")
        covers(record.flags(engine), then["flag"], "the flag")
        again = engine.decide("sums", b'{"hour": 1, "user": "u1", "old": [1.5, null, true]}',
                              [b'"a"', b'{"id": "b", "features": {"size": 1}}', b'"c"'], id="e1",
                              request="key 1")  # fmt: skip
        assert again.again and again.arm == then["decisions"]["sums/e1"]["arm"], "an idempotency key is forgotten"
        engine.replace("sums", (scratch / "sums.model").read_bytes())  # as ``PUT model`` does
        for app in ("shop", "plain"):
            for k in range(5):
                engine.decide(app, b'{"hour": 2}', [b'"a"', b'"b"'], id=f"new{k}")
                engine.reward(app, f"new{k}", 1.0)
            engine.wait_learnt()
            assert engine.models[app].lessons >= then["models"][app][0] + 5
        engine.snapshot()
        with engine.reading as open_journal:
            sound(open_journal)
    finally:
        engine.stop()


def sound(of: Journal, at_least: int = 100) -> None:
    report = verify(of)
    assert report.problems == [] and report.events > at_least, report.problems[:3]


def exports(folder: Path, scratch: Path) -> None:
    """Exported logs are read by the judges."""
    rewards = []
    makers: dict[str, Callable[[Path], Log]] = {"parquet": Log.from_parquet, "dsjson": Log.from_dsjson}
    for name, make in makers.items():
        shutil.copy(folder / f"export.{name}", scratch / f"log.{name}")
        rewards.append(np.asarray(make(scratch / f"log.{name}").rows.rewards, dtype=float))
    assert len(rewards[0]) > 15, "the journal has more decisions of the shop"
    np.testing.assert_allclose(rewards[0], rewards[1])


def decider(folder: Path, scratch: Path) -> None:
    """The folder of a Decider opens, is exported as it was, decides as it did, and goes on."""
    then, clock = read(folder, "folder.json"), [record.NOW + 10.0 * record.TAUGHT]
    with zipfile.ZipFile(folder / "folder.zip") as archive:
        archive.extractall(scratch / "folder")
    with aw.Decider(storage=scratch / "folder", clock=lambda: clock[0]) as shop:
        covers(record.logged(shop), then["log"], "the log of the folder")
        covers(record.decided(shop), then["next"], "the decisions of the folder")
        clock[0] += 1e6
        made = shop.decide({"hour": 3}, record.ARMS)
        assert shop.reward(made.id, 1.0).status == "taken"
    connection = open_store(str(scratch / "folder")).connect_reading()
    try:
        sound(Journal(connection), at_least=60)
    finally:
        connection.close()


def certificate(folder: Path, scratch: Path) -> None:
    covers(record.certified(), read(folder, "certificate.json"), "the certificate")


def policies(folder: Path, scratch: Path) -> None:
    """Every exported policy loads, answers what it answered, and has no field that is not written any more."""
    written = record.policies()
    for name, then in read(folder, "policies.json").items():
        policy = Policy.load(folder / f"policy.{name}.json")
        covers(record.answers(policy), then, name)
        gone = set(policy.document) - set(written[name].document)
        assert not gone, f"{name}: the fields {sorted(gone)} are gone"


def _lines(data: bytes) -> Any:
    return [json.loads(line) for line in data.splitlines()]


def _table(data: bytes) -> Any:
    import pyarrow.parquet

    return json.loads(json.dumps(pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist(), default=str))


EXPORTS: dict[str, Callable[[bytes], Any]] = {"json": _lines, "dsjson": _lines, "parquet": _table}
CHECKS = {check.__name__: check for check in (models, journal, exports, decider, certificate, policies)}


def check(folder: Path, name: str, scratch: Path) -> None:
    try:
        CHECKS[name](folder, scratch)
    except (AssertionError, ValueError, KeyError) as error:
        error.add_note(CHANGED.format(version=folder.name))
        raise


# ---------------------------------------------------------------------- the tests


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_what_a_version_wrote_is_loaded_replayed_and_continued(folder: Path, name: str, tmp_path: Path) -> None:
    check(folder, name, tmp_path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "now"
    assert record.record(folder) < 3_000_000
    return folder


@pytest.mark.parametrize("name", CHECKS)
def test_what_is_recorded_now_passes(recorded: Path, name: str, tmp_path: Path) -> None:
    check(recorded, name, tmp_path)


def test_another_processor_reads_the_same(recorded: Path) -> None:
    """Its BLAS and our kernels take other instructions, and sum in another order where they may."""
    code = (
        "import sys, tempfile; from pathlib import Path; from tests.golden.test_golden import CHECKS, check\n"
        "for name in CHECKS: check(Path(sys.argv[1]), name, Path(tempfile.mkdtemp(dir=sys.argv[2])))"
    )
    other = {"OPENBLAS_CORETYPE": "Nehalem", "ARMWISE_SIMD": "baseline", "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    with tempfile.TemporaryDirectory() as scratch:
        words = [sys.executable, "-c", code, str(recorded), scratch]
        done = subprocess.run(words, env=os.environ | other, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_formats_of_exports_are_all_recorded() -> None:
    assert set(EXPORTS) == set(FORMATS)


def _another_format(text: str) -> str:
    return text.replace('"arm": "a"', '"arm": "z"', 1)


@pytest.mark.parametrize(
    ("name", "file", "change"),
    [
        ("models", "models.json", lambda text: text.replace("[0,", "[1,", 1)),
        ("journal", "journal.json", _another_format),
        ("journal", "journal.json", lambda text: text.replace('"mean": ', '"means": ', 1)),
        ("journal", "export.json", lambda text: text.replace('"arm":', '"choice":', 1)),
        ("decider", "folder.json", lambda text: text.replace('"next": [["', '"next": [["z', 1)),
        ("certificate", "certificate.json", lambda text: text.replace('"delta"', '"alpha"', 1)),
        ("policies", "policy.hashed.json", lambda text: text.replace('"format"', '"shape"', 1)),
        ("policies", "policies.json", lambda text: text.replace('"hashed": [[', '"hashed": [[0.5, ', 1)),
    ],
)
def test_a_changed_format_is_noticed_and_said(
    recorded: Path, tmp_path: Path, name: str, file: str, change: Callable[[str], str]
) -> None:
    """A check that passes whatever was recorded would keep no format."""
    folder = tmp_path / "0.0.1"
    shutil.copytree(recorded, folder)
    before = (folder / file).read_text(encoding="utf-8")
    (folder / file).write_text(change(before), encoding="utf-8")
    assert (folder / file).read_text(encoding="utf-8") != before, "nothing was changed"
    with pytest.raises((AssertionError, ValueError, KeyError)) as caught:
        check(folder, name, tmp_path)
    assert "What armwise 0.0.1 wrote is no longer read" in caught.value.__notes__[0]

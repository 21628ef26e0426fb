"""Readers of bytes from outside under damage: whatever comes, they read it or say what is wrong with it.

Each reader has a corpus (``corpus/NAME/``), which is kept: samples, and what was found to break it. ``make fuzz`` tries
for longer and from other seeds, and stores what breaks a reader there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from armwise.core import saving
from armwise.core.policy_document import Policy
from armwise.export.evaluators import javascript, python
from armwise.features.encoding.tokens import InvalidInput
from armwise.offline.logs.formats.edge_log import EdgeLog
from armwise.offline.logs.log import Log
from armwise.offline.logs.slate_log import SlateLog
from armwise.service.adapters.flags import evaluate_flags
from armwise.service.adapters.flags.evaluate_flags import read_unit
from armwise.service.adapters.flags.failure import Failure
from armwise.service.adapters.flags.track import Tracking
from armwise.service.experiments.definition import Definition
from armwise.service.journal.bodies import unpack_arms
from armwise.service.journal.errors import Damaged
from armwise.service.journal.events import KINDS, Row
from armwise.service.server.config import load_config
from armwise.service.web.v1 import rankings
from armwise.service.web.v1.decisions import read
from armwise.service.web.v1.experiments import ExperimentRequest

CORPUS = Path(__file__).parent / "corpus"
MUTATIONS = 150  # of each sample; ``make fuzz`` sets ARMWISE_FUZZ_SECONDS instead
WORDS = (
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"NaN",
    b'"',
    b"{",
    b"[",
    b"]",
    b"}",
    b",",
    b"\x00",
    b"\xff",
    b"\\ud800",
    b"9" * 40,
)


def _model(data: bytes) -> None:
    """As it is, and as if whoever altered it had signed it again: the digest guards against accidents only."""
    with contextlib.suppress(saving.LoadError):
        saving.loads(data)
    saving.loads(data[:-32] + hashlib.sha256(data[:-32]).digest())


def _journal(data: bytes) -> None:
    for kind in KINDS:
        try:
            _ = Row(1, 0, "shop", kind, "e1", data).event
        except Damaged:
            continue
    unpack_arms(data)


def _request(data: bytes) -> None:
    read(data, lambda name: pytest.fail("no catalogue is known"))


def _ranking(data: bytes) -> None:
    rankings.read(data, lambda name: pytest.fail("no catalogue is known"))


def _flag(data: bytes) -> None:
    """The bodies of an evaluation and of an event."""
    try:
        evaluate_flags.read(data)
    except Failure:
        read_unit(bytes(msgspec.json.decode(data, type=Tracking).context))


def _experiment(data: bytes) -> None:
    sent = msgspec.json.decode(data, type=ExperimentRequest)
    told = {field: getattr(sent, field) for field in sent.__struct_fields__}
    Definition.read(told.pop("arms"), told.pop("metrics"), **told)


def _policy(data: bytes) -> None:
    """As it is, and as if whoever altered it had sealed it again."""
    with contextlib.suppress(ValueError):
        Policy.parse(data)
    own = data.rstrip().rpartition(b',"checksum":"sha256:')[0] + b"}"
    seal = b',"checksum":"sha256:' + hashlib.sha256(own).hexdigest().encode() + b'"}'
    policy = Policy.parse(own[:-1] + seal)
    javascript(policy), python(policy)


def _beacons(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "beacons.jsonl"
        path.write_bytes(data)
        whole = EdgeLog.from_beacons(path, horizon=60.0, skip=True)
        _ = whole.lessons(), whole.arm_names
        EdgeLog.from_beacons(path, horizon=60.0)


def _slates(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "slates.dsjson"
        path.write_bytes(data)
        _ = SlateLog.from_dsjson(path).totals


def _config(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "armwise.toml"
        path.write_bytes(data)
        load_config(path)


def _log(name: str, make: Callable[[Path], Log]) -> Callable[[bytes], None]:
    def reader(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"log.{name}"
            path.write_bytes(data)
            _ = make(path).rows

    return reader


READERS: dict[str, tuple[Callable[[bytes], object], tuple[type[Exception], ...]]] = {
    "model": (_model, (saving.LoadError,)),
    "journal": (_journal, (Damaged, ValueError)),
    "request": (_request, (InvalidInput,)),
    "csv": (_log("csv", Log.from_csv), (ValueError,)),
    "parquet": (_log("parquet", Log.from_parquet), (ValueError, OSError)),
    "config": (_config, (ValueError,)),
    "dsjson": (_log("dsjson", Log.from_dsjson), (ValueError,)),
    "service_log": (_log("jsonl", Log.from_dsjson), (ValueError,)),
    "slates": (_slates, (ValueError,)),
    "ranking": (_ranking, (InvalidInput,)),
    "flag": (_flag, (Failure, msgspec.MsgspecError, UnicodeDecodeError)),
    "experiment": (_experiment, (ValueError, msgspec.MsgspecError)),
    "policy": (_policy, (ValueError,)),
    "beacons": (_beacons, (ValueError,)),
}


def mutated(chance: random.Random, data: bytes) -> bytes:
    """The bytes with a few of them changed, taken away, doubled, or put among others."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        end = min(len(changed), at + chance.choice((1, 1, 2, 8, 64)))
        match chance.randrange(5):
            case 0:
                changed[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
            case 1:
                del changed[at:end]
            case 2:
                changed[at:at] = changed[at:end]
            case 3:
                changed[at:at] = chance.choice(WORDS)
            case _:
                del changed[at:]
    return bytes(changed)


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_with_a_reason(name: str) -> None:
    """Anything but the documented errors, a crash included, is a reader that trusts its input."""
    reader, refusals = READERS[name]
    samples = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    assert samples
    seconds = float(os.environ.get("ARMWISE_FUZZ_SECONDS", "0"))
    chance, until = random.Random(time.time_ns() if seconds else 31), time.monotonic() + seconds
    tried, left = list(samples), MUTATIONS * len(samples)
    while tried or left > 0 or time.monotonic() < until:
        left -= not tried
        data = tried.pop() if tried else mutated(chance, chance.choice(samples))
        try:
            reader(data)
        except refusals as error:
            if not str(error):
                pytest.fail(f"a refusal without a reason: {error!r}")
        except BaseException:
            found = CORPUS / name / f"found-{len(data)}-{msgspec.json.encode(list(data[:4])).hex()[:16]}"
            if seconds:
                found.write_bytes(data)
            raise


def test_the_samples_are_read() -> None:
    """A corpus that is refused at its first byte would try nothing."""
    for name, (reader, _) in READERS.items():
        for path in sorted((CORPUS / name).glob("sample*")):
            if name != "journal":  # each body is of one kind, and no arms
                reader(path.read_bytes())

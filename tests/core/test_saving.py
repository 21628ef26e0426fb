"""Saving and loading: exact, checked, and never executing anything."""

import hashlib
import json
import struct

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.core.saving import differences


@pytest.fixture
def trained():
    agent = aw.LinUCB(3, 0.5, 0.3, seed=4)
    rng = np.random.default_rng(1)
    agent.play(rng.normal(size=(50, 4, 3)), rng.normal(size=(50, 4)))
    return agent


def test_a_saved_agent_continues_as_if_nothing_had_happened(trained, tmp_path):
    path = tmp_path / "model.aw"
    trained.save(path)
    again = aw.load(path)
    rng = np.random.default_rng(2)
    X, R = rng.normal(size=(200, 4, 3)), rng.normal(size=(200, 4))
    assert trained.play(X, R).arms.tolist() == again.play(X, R).arms.tolist()
    assert saving.dumps(trained) == saving.dumps(again)


@pytest.mark.parametrize("keep", [0, 5, 8, 19, 30, 100, -33, -32, -1])
def test_a_truncated_file_is_refused(trained, keep):
    data = saving.dumps(trained)
    with pytest.raises(aw.LoadError, match=r"truncated|not an armwise file"):
        saving.loads(data[:keep])


def test_every_altered_byte_is_noticed(trained):
    data = saving.dumps(trained)
    for position in range(0, len(data), 7):
        altered = bytearray(data)
        altered[position] ^= 0x10
        with pytest.raises(aw.LoadError):
            saving.loads(bytes(altered))


def sealed(version, header, body=b""):
    """A file with a right digest and whatever contents."""
    head = json.dumps(header).encode()
    data = saving.MAGIC + struct.pack("<IQ", version, len(head)) + head + body
    return data + hashlib.sha256(data).digest()


def test_a_newer_format_says_upgrade():
    with pytest.raises(aw.LoadError, match="upgrade armwise"):
        saving.loads(sealed(saving.FORMAT + 1, {}))


@pytest.mark.parametrize(
    "tree",
    [
        {"$": "object", "class": "os:system", "params": {"command": "true"}, "state": {}},
        {"$": "object", "class": "armwise:NoSuchAgent", "params": {}, "state": {}},
        {"$": "object", "class": "armwise:load", "params": {"path": "x"}, "state": {}},
        {"$": "spell", "words": 1},
        {"$": "rng", "state": {"$": "dict", "items": [["bit_generator", "Mystery"]]}},
        {"$": "array", "index": 3},
        {"$": "object", "class": "armwise:LinUCB", "params": {"dim": -1}, "state": {}},
        {"$": "object", "class": "armwise:LinUCB", "params": {"colour": 1}, "state": {}},
    ],
    ids=[
        "foreign code",
        "unknown class",
        "not a class",
        "unknown kind",
        "unknown generator",
        "missing array",
        "bad value",
        "bad name",
    ],
)
def test_contents_that_are_not_ours_are_refused_with_a_reason(tree):
    with pytest.raises(aw.LoadError):
        saving.loads(sealed(saving.FORMAT, {"object": tree, "arrays": []}))


def test_what_has_no_safe_format_says_so_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.aw"
    aw.Exp3(3).save(path)
    before = path.read_bytes()
    agent = aw.PolicyArms(aw.UCB1(2), [lambda x: 0, lambda x: 1], 2)
    with pytest.raises(ValueError, match="cannot be saved"):
        agent.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_special_values_survive():
    class Box(saving.Saved):
        def __init__(self, content):
            self.content = content

    Box.__qualname__ = "Box"
    saving._registry[saving._class_name(Box)] = Box
    content = {
        "numbers": [float("inf"), float("-inf"), 1e-320, -0.0, 2**70, True, None],
        ("a", 1): np.array([[1, 2]], dtype=np.int16),
        "empty": np.zeros((0, 3)),
        "text": "née ✓",
    }
    again = saving.loads(saving.dumps(Box(content))).content
    assert again["numbers"] == content["numbers"]
    assert again[("a", 1)].dtype == np.int16 and again[("a", 1)].tolist() == [[1, 2]]
    assert again["empty"].shape == (0, 3) and again["text"] == content["text"]


def test_differences_are_told_and_an_open_width_equals_any():
    assert differences({"lam": 1.0, "dim": None}, {"lam": 2.0, "dim": 3}) == ["lam is 1.0 here and 2.0 there"]

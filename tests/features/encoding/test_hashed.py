"""Features, against the description in ``encoder.py`` followed with plain Python integers."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armwise.features.encoding.arms import read_arm, read_arms
from armwise.features.encoding.from_python import arm_to_json, read_named_arms
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import UNSCALED, Scaler, Scaling
from armwise.features.encoding.tokens import InvalidInput, RequestTokens, blake2b, part, part_of, read_json, tail

MASK = 2**64 - 1


def h(token: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(token, digest_size=8).digest(), "little")


def tokens(path: bytes, value: Any, top: bool = False) -> list[tuple[bytes, float, bool]]:
    if isinstance(value, bool):
        return [(path + b"\x1eb" + (b"true" if value else b"false"), 1.0, False)]
    if isinstance(value, str):
        return [(path + b"\x1es" + value.encode(), 1.0, False)]
    if isinstance(value, (int, float)):
        return [(path, float(value), True)]
    if isinstance(value, dict):
        joint = b"" if top else b"\x1f"
        return [t for k, v in value.items() for t in tokens(path + joint + k.encode(), v)]
    if isinstance(value, list):
        found = []
        for i, v in enumerate(value):
            number = isinstance(v, (int, float)) and not isinstance(v, bool)
            found += tokens(path + b"\x1f%d" % i if number else path, v, top)
        return found
    assert value is None
    return []


def mix(c: int, a: int) -> int:
    z = (c * 0x9E3779B97F4A7C15 + a) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def row(context: Any, arm_id: str, features: Any, scaling: dict[int, tuple[float, float]], dim: int) -> list[float]:
    def valued(found: list[tuple[bytes, float, bool]]) -> list[tuple[int, float]]:
        result = []
        for token, value, numeric in found:
            key = h(token)
            if numeric and key not in scaling:
                value = 0.0
            elif numeric:
                mean, sd = scaling[key]
                value = min(max((value - mean) / (3.0 * sd), -1.0), 1.0)
            result.append((key, value))
        return result

    left = [(h(b"1"), 1.0), *valued(tokens(b"c", context, True))]
    right = [(h(b"1"), 1.0), (h(b"a\x1ei" + arm_id.encode()), 1.0), *valued(tokens(b"a", features, True))]
    x = [0.0] * dim
    for hc, vc in left:
        for ha, va in right:
            z = mix(hc, ha)
            x[(z % 2**63) % dim] += -vc * va if z >= 2**63 else vc * va
    norm = math.sqrt(sum(v * v for v in x))
    return [v / norm for v in x] if norm else x


leaves = st.none() | st.booleans() | st.text(max_size=5) | st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=4), values, max_size=4)


@settings(max_examples=150, deadline=None)
@given(context=objects, features=st.lists(objects, max_size=2), dim=st.integers(1, 40), data=st.data())
def test_rows_are_what_the_description_says(context: Any, features: Any, dim: int, data: Any) -> None:
    read_context, read_features = part(json.dumps(context).encode(), "c"), part(json.dumps(features).encode(), "a")
    table = np.concatenate([read_context.table, read_features.table])
    names = sorted({int(name) for name, _, numeric in table if numeric})
    scaling = {n: (data.draw(st.floats(-10, 10)), data.draw(st.floats(0.1, 10))) for n in names[::2]}
    used = sorted(scaling)
    arrays = Scaling.joined(np.array(used, np.uint64), *(np.array([scaling[n][i] for n in used]) for i in (0, 1)))
    arms = [blake2b(b"a\x1eix"), blake2b(b"a\x1eiy")]
    stack = RequestTokens(read_context, tail(arms, [read_features, read_features]))
    X = HashedRows(dim=dim).rows(stack, Scaling(arrays.packed))
    assert X[0].tolist() == row(context, "x", features, scaling, dim)  # to the bit
    assert X[1].tolist() == row(context, "y", features, scaling, dim)


def test_a_row_never_changes() -> None:
    """Journals outlive versions: if this fails, old journals would be replayed into other models."""
    context = part(b'{"hour": 9, "tags": ["new", true, 3], "user": {"city": "Oslo", "age": null}}', "c")
    arm = read_arm(b'{"id": "pasta", "features": [{"taste": "salty"}, {"price": 12.5}]}')
    scaler, stack = Scaler(), RequestTokens(context, tail([arm.hash], [arm.features]))
    scaler.update(stack.table)
    scaler.update(
        RequestTokens(
            part(b'{"hour": 15, "tags": ["new", true, 5]}', "c"), tail([bytes(8)], [part(b'{"price": 10}', "a")])
        ).table
    )
    X = HashedRows(dim=8).rows(stack, scaler.scaling(stack))
    assert hashlib.sha256(X.astype("<f8").tobytes()).hexdigest()[:16] == "25b4d4a2a590b83e"


def test_without_interactions_only_pairs_with_the_constant_remain() -> None:
    context, arm = part(b'{"a": "x", "b": "y"}', "c"), part(b'{"c": "z"}', "a")
    x = HashedRows(dim=4096, interactions=False).rows(RequestTokens(context, tail([bytes(8)], [arm])), UNSCALED)[0]
    assert np.count_nonzero(x) == 5  # 1 and the two of the context with 1; 1 with the id and with the arm's own


def test_scaler_has_the_mean_and_deviation_of_everything_before() -> None:
    rng = np.random.default_rng(3)
    numbers = rng.normal(50.0, 7.0, 200)
    scaler = Scaler()
    for number in numbers:
        scaler.update(part(json.dumps({"x": number}).encode(), "c").table)
    scaling = scaler.scaling(RequestTokens(part(b'{"x": 1}', "c"), tail([], [])))
    assert scaling.means == pytest.approx(numbers.mean(), rel=1e-12)
    assert scaling.deviations == pytest.approx(numbers.std(), rel=1e-12)


def test_scaler_does_not_grow_without_bound() -> None:
    scaler = Scaler()
    for k in range(50):
        scaler.update(part(json.dumps({f"n{k}-{i}": i for i in range(100)}).encode(), "c").table)
    assert len(scaler.names) == 4096


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": {"b": 1, "b": 1}}', "twice"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": Infinity}', "not JSON"),
        (b'{"a": 1e999}', "not JSON"),
        (b'{"a": 1e200}', "1e150"),
        (b'{"a": "\xff"}', "not JSON"),
        (b'{"a": "\\ud800"}', "not JSON"),
        (b"[" * 100 + b"]" * 100, "nested 100 deep"),
        (b"[" * 100_000, "nested"),
        (b'{"a": "' + b"x" * 5000 + b'"}', "5000 characters"),
        (b'{"' + b"x" * 5000 + b'": 1}', "5000 characters"),
        (b"[1, 2]", "list of objects"),
        (b'"text"', "object"),
        (b"", "not JSON"),
        (json.dumps({str(i): i for i in range(5000)}).encode(), "more than 4096 features"),
        (b'{"a": ' + b"9" * 400 + b"}", "1e150"),
    ],
)
def test_hostile_parts_are_refused_with_the_reason(text: bytes, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        part(text, "c")


def test_colons_and_brackets_inside_strings_do_not_count() -> None:
    assert read_json(b'{"a:[{": "\\":{[", "b\\\\": ":"}') == {"a:[{": '":{[', "b\\": ":"}


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([], "must not be empty"),
        ([b'"a"', b'{"id": "a"}'], "two arms have the id 'a'"),
        ([b'""'], "1 to 256 characters"),
        ([b'"' + b"x" * 257 + b'"'], "1 to 256 characters"),
        ([b'"a\\u0000"'], "control"),
        ([b'{"id": "a", "id": "b"}'], "twice"),
        ([b'{"id": "a", "colour": 1}'], "colour"),
        ([b"7"], "int"),
        ([b"{}"], "id"),
    ],
)
def test_bad_arms_are_refused_with_the_reason(texts: list[bytes], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        read_arms(texts)


def test_what_would_take_long_to_read_is_refused_before_it_is_read() -> None:
    """Every value is hashed with the keys above it: 2000 values below 120 KB of keys took a second."""
    deep = "".join(f'{{"{chr(97 + i % 26) * 4096}":' for i in range(30)) + str(list(range(1990))) + "}" * 30
    with pytest.raises(InvalidInput, match="bytes on the way to one value"):
        part(deep.encode(), "c")
    crowds: list[list[Any]] = [[1] * 400_000, [{}] * 250_000, [None] * 190_000]
    for many in crowds:
        with pytest.raises(InvalidInput, match="more than 4096 features"):
            part(json.dumps({"v": many}).encode(), "c")
    assert len(part(json.dumps({"v": [1] * 4096}).encode(), "c").table) == 4096


@given(
    st.dictionaries(
        st.text(max_size=6),
        st.one_of(
            st.none(), st.booleans(), st.text(max_size=6), st.integers(-(2**53), 2**53),
            st.floats(-1e140, 1e140, allow_nan=False),
        ),
        max_size=8,
    )
)  # fmt: skip
def test_a_flat_dictionary_has_the_tokens_of_its_json(names: dict[str, Any]) -> None:
    # Two readers of the same thing: if they differed, a model in memory and its journal would learn different rows.
    try:
        text = msgspec.json.encode(names)
    except UnicodeEncodeError:
        with pytest.raises(InvalidInput):
            part_of(names, "c")
        return
    assert part_of(names, "c") == part(text, "c")


values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=True, allow_infinity=False),
    st.text(max_size=5), st.lists(st.integers(0, 3), max_size=2),
)  # fmt: skip
described = st.one_of(
    st.text(min_size=1, max_size=4),
    st.builds(
        lambda id, rest: {"id": id} | rest,
        st.one_of(st.text(min_size=1, max_size=4), st.integers(0, 9)),
        st.dictionaries(st.text(max_size=4), values, max_size=4),
    ),
)


@settings(max_examples=200, deadline=None)
@given(arms=st.lists(described, min_size=1, max_size=4))
def test_arms_read_without_their_json_are_those_of_the_json(arms: list[Any]) -> None:
    def read(how: Any) -> Any:
        try:
            found = how()
        except ValueError:
            return ValueError
        return found.ids, found.tail, [bytes(raw) for raw in found.raws]

    expected = read(lambda: read_arms([arm_to_json(arm) for arm in arms]))
    assert read(lambda: read_named_arms(arms)) == expected
    assert read(lambda: read_named_arms(arms)) == expected  # remembered now

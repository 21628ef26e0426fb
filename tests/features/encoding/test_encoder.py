"""aw.features.Encoder: the service's rows from whatever has names, and names back from positions."""

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import armwise as aw
from armwise.core import saving
from armwise.features.encoding.arms import read_arms
from armwise.service.journal.events import Creation
from armwise.service.model.build import build_model

SEEN: list[dict[str, Any]] = [
    {"device": d, "age": a, "tags": ["new", "cheap"], "user": {"city": "Oslo", "vip": v}, "gap": None}
    for d, a, v in (("phone", 31.0, True), ("tv", 52.5, False), ("phone", 18.0, False))
]
ARMS: list[Any] = ["red", {"id": "blue", "price": 3.5, "kind": "new"}, {"id": "green", "price": 9.0}]


@dataclasses.dataclass
class Visitor:
    device: str
    age: float


def test_it_is_the_services_encoder() -> None:
    # The same numbers in the same order: the rows of the public encoder are those that the service's model makes.
    model = build_model(Creation(features={"dim": 64}))
    encoder = aw.features.Encoder(dim=64)
    arms = [
        b'"red"',
        b'{"id":"blue","features":{"price":3.5,"kind":"new"}}',
        b'{"id":"green","features":{"price":9.0}}',
    ]
    for context in SEEN:
        text, offered = json.dumps(context).encode(), read_arms(arms)
        seen = model.see(text, offered)
        assert seen.view.tobytes() == encoder.rows_of(context, ARMS).tobytes()
        assert seen.stack is not None
        model.scaler.update(seen.stack.table)
        encoder.fit([context], ARMS)
    assert model.see(text, offered).view.tobytes() == encoder.rows_of(SEEN[-1], ARMS).tobytes()


def test_the_same_row_from_every_kind_of_thing() -> None:
    encoder = aw.features.Encoder(dim=32).fit([{"age": 10.0}, {"age": 50.0}])
    wanted = encoder.row({"device": "phone", "age": 31.0})
    frame = pd.DataFrame({"device": ["phone"], "age": [31.0]})
    for same in (
        Visitor("phone", 31.0), frame.iloc[0], next(frame.itertuples(index=False)), pl.from_pandas(frame),
        pl.from_pandas(frame).row(0, named=True), '{"device": "phone", "age": 31.0}', b'{"device":"phone","age":31}',
        {"device": "phone", "age": np.float64(31.0), "gap": np.nan, "other": pd.NA},
    ):  # fmt: skip
        assert encoder.row(same).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("interactions", [True, False])
@pytest.mark.parametrize("arm", [None, *ARMS])
def test_what_the_names_add_sums_to_the_row(arm: Any, interactions: bool) -> None:
    encoder = aw.features.Encoder(dim=64, interactions=interactions).fit(SEEN, ARMS)
    for context in SEEN:
        row = np.zeros(64)
        for feature in encoder.describe(context, arm):
            row[feature.position] += feature.value
        whole = encoder.row(context) if arm is None else encoder.rows_of(context, [arm])[0]
        np.testing.assert_allclose(row, whole, atol=1e-12)


def test_positions_have_names() -> None:
    encoder = aw.features.Encoder(dim=4096).fit(SEEN)
    names = encoder.names(SEEN, ARMS)
    for name in ("device=phone", "user.city=Oslo x arm=blue", "age x arm.price", "tags=new x arm.kind=new", "arm=red"):
        assert sum(name in each.split(" + ") for each in names) == 1, name


def test_coefficients_are_found_by_name() -> None:
    # Rewards that depend on the device alone: a ridge on the rows must give "phone" the larger weight, under its name.
    encoder = aw.features.Encoder(dim=512)
    contexts = [{"device": d, "hour": h} for d in ("phone", "tv") for h in range(12)]
    X = encoder.fit(contexts).transform(contexts)
    y = np.array([float(c["device"] == "phone") for c in contexts])
    theta = np.linalg.solve(X.T @ X + 0.01 * np.eye(512), X.T @ y)
    weights = encoder.coefficients(theta, contexts)
    assert weights["device=phone"] > 0.5 > abs(weights["hour"]) + 0.2
    with pytest.raises(ValueError, match=r"weights must have shape \(512,\)"):
        encoder.coefficients(theta[:3], contexts)


def test_dates_are_their_parts_in_any_locale() -> None:
    names = {name for name, *_ in aw.features.Encoder().describe({"at": datetime.datetime(2026, 11, 16, 21, 30)})}
    assert {"at.weekday=Monday", "at.month=11", "at.year", "at.hour"} <= names


def test_it_is_saved_with_its_scales(tmp_path: Path) -> None:
    encoder = aw.features.Encoder(dim=16).fit(SEEN)
    saving.save(encoder, tmp_path / "encoder.aw")
    again = aw.load(tmp_path / "encoder.aw", aw.features.Encoder)
    assert again.row(SEEN[0]).tobytes() == encoder.row(SEEN[0]).tobytes()


def test_bad_input_is_named() -> None:
    encoder = aw.features.Encoder()
    for bad, said in (
        ({"x": float("inf")}, "context.x must be finite"),
        ({"x": 10**400}, "context.x must be below"),
        ([1, 2], "context must have names"),
        ("{", "context is text, but not JSON"),
        ({"x": object()}, "context.x must be a number"),
    ):
        with pytest.raises(ValueError, match=said):
            encoder.row(bad)

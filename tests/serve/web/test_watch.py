"""What the page is told: policies that cannot judge a round, and numbers that nothing supports."""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.cli.main import main
from armwise.serve.engine.application import Application
from armwise.serve.engine.engine import Engine
from armwise.serve.web.logging import set_up
from armwise.serve.web.page.watch import Watch, radius


def use(engine: Engine, ids: range, arms: int = 2, value: float | None = None) -> None:
    for k in ids:
        engine.decide("shop", b"{}", [b'"a"', b'"b"', b'"c"'][:arms], id=f"e{k}")
        engine.reward("shop", f"e{k}", k % 2 if value is None else value)


def looked(watch: Watch) -> dict[str, dict[str, Any]]:
    """The policies as the page gets them now, by name."""
    watch._answer, watch._judged_at = {}, -1e9  # as if five seconds had passed
    return {each["name"]: each for each in watch.look()["policies"]}


def test_a_policy_that_cannot_judge_a_round_leaves_the_others_alone(engines: Callable[..., Engine]) -> None:
    policies: dict[str, dict[str, Any]] = {"fixed": {"class": "Exp3", "n_arms": 2}, "wide": {"class": "LinUCB"}}
    engine = engines(policies=policies)
    watch = Watch(engine, "shop")
    use(engine, range(1), arms=3)
    found = looked(watch)
    assert "could not answer 1 of 1 decisions (this application has 2 arms, got 3)" in found["fixed"]["warning"]
    assert (found["fixed"]["value"], found["fixed"]["ess"]) == (None, 0.0)
    use(engine, range(1, 41))
    again = looked(watch)
    assert "could not answer 1 of 41 decisions" in again["fixed"]["warning"]
    assert again["fixed"]["value"] is not None
    assert "could not" not in again["wide"]["warning"]
    fresh = looked(Watch(engine, "shop"))  # whoever reads it all at once sees the same
    assert fresh == again
    watch.close()


def test_a_look_that_fails_does_not_put_policies_out_of_step(
    engines: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines()
    watch = Watch(engine, "shop")
    use(engine, range(40))
    with monkeypatch.context() as broken:
        broken.setattr(watch._judged[1], "follow", lambda rounds: 1 / 0)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                looked(watch)
    assert looked(watch) == looked(Watch(engine, "shop"))
    watch.close()


def test_a_policy_that_cannot_be_built_stops_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shop.toml").write_text(
        f'storage = "{tmp_path}/data"\n[applications.shop]\npolicies.bold = {{class = "Nonsense"}}'
    )
    assert main(["serve", str(tmp_path / "shop.toml")]) == 2
    assert "applications.shop: policies.bold: agent: armwise has nothing called 'Nonsense'" in capsys.readouterr().err


def test_apprentice_mode_supports_only_the_first_arm(engines: Callable[..., Engine]) -> None:
    engine = engines(apprentice=True)
    watch = Watch(engine, "shop")
    use(engine, range(40))
    found = looked(watch)
    assert (
        "in 50.0% of its decisions the target plays an arm that this log never tries" in (found["at random"]["warning"])
    )
    assert found["always the first"]["warning"] == ""  # it is what was done
    watch.close()


def test_a_few_decisions_are_never_trusted(engines: Callable[..., Engine]) -> None:
    engine = engines()
    watch = Watch(engine, "shop")
    use(engine, range(4), value=1.0)
    assert all("answer the question: effective sample size" in each["warning"] for each in looked(watch).values())
    watch.close()


def test_a_nested_agent_is_shown_whole() -> None:
    inner = aw.LinUCB(dim=128, alpha=0.5, lam=2.0, discount=0.999)
    agent = aw.Explore(aw.Explore(inner, epsilon=0.2), epsilon=0.1)
    assert repr(aw.Explore(inner, epsilon=0.1)) == f"Explore(agent={inner!r}, epsilon=0.1)"
    assert repr(inner) in repr(agent)
    long = repr(aw.SpectralUCB([[float(i == j) for i in range(30)] for j in range(30)], horizon=100))
    assert "..." in long and long.endswith(")")


def test_warnings_are_lines_of_the_log_too(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    names = ("armwise", "uvicorn", "py.warnings")
    before = {name: vars(logging.getLogger(name)).copy() for name in names}
    monkeypatch.setattr(sys, "stderr", written)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            logging.captureWarnings(False)  # whatever was captured before
            set_up("info")
            warnings.warn("a number overflowed", RuntimeWarning, stacklevel=1)
            logging.captureWarnings(False)
    finally:
        for name, was in before.items():
            vars(logging.getLogger(name)).update(was)
    line = json.loads(written.getvalue())
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
    assert "RuntimeWarning: a number overflowed" in line["message"]


def test_a_mean_that_rises_stays_within_its_band(engines: Callable[..., Engine]) -> None:
    """A learning service earns more and more: if this fails, the page contradicts itself as soon as it works."""
    engine = engines()
    watch = Watch(engine, "shop")
    for start, value in ((0, 0.0), (30, 1.0)):
        use(engine, range(start, start + 30), value=value)
        engine.wait_learnt()
        watch._answer = {}
        rewards = watch.look()["rewards"]
        assert rewards["low"] <= rewards["mean"] <= rewards["high"]
    assert all(low <= mean <= high for _, mean, low, high in rewards["curve"])
    assert rewards["n"] == 60
    watch.close()


def test_the_band_covers_means_that_change_at_every_moment() -> None:
    """200 runs of 2,000 rewards whose mean jumps: more than 5 % outside at any moment means that the band is wrong."""
    rng = np.random.default_rng(8)
    n = np.arange(1, 2001)
    mu = np.where(n < 700, 0.2, 0.9)
    rewards = rng.random((200, 2000)) < mu
    room = np.array([radius(float(k), 0.0, 1.0) for k in n])
    outside = np.abs((rewards - mu).cumsum(axis=1) / n) > room
    assert outside.any(axis=1).mean() <= 0.05


def test_rewards_beyond_the_range_widen_it_and_forget_nothing(engines: Callable[..., Engine]) -> None:
    engine = engines()
    watch = Watch(engine, "shop")
    use(engine, range(6), value=1.0)
    engine.wait_learnt()
    assert watch.look()["rewards"]["range"] == [0.0, 1.0]
    use(engine, range(6, 7), value=-3.0)
    engine.wait_learnt()
    watch._answer = {}
    rewards = watch.look()["rewards"]
    assert (rewards["n"], rewards["range"], len(rewards["curve"])) == (7, [-3.0, 1.0], 7)
    watch.close()


def test_policies_that_change_are_compared_at_once(engines: Callable[..., Engine]) -> None:
    engine = engines()
    watch = Watch(engine, "shop")
    use(engine, range(3))
    assert list(looked(watch)) == ["at random", "always the first"]
    engine.apply({"shop": Application(policies={"bold": {"class": "LinUCB"}}).creation()})
    assert list(looked(watch)) == ["at random", "always the first", "bold"]
    watch.close()

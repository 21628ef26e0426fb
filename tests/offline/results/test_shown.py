"""What is shown of an evaluation: no end is printed as 0 that is not, kinds are said, verdicts are in every view."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import armwise as aw
from armwise.offline import DR, Evaluations, Log, adaptive, compare, effects, evaluate
from tests.offline.worlds import make


def no_clicks(n=300):
    rng = np.random.default_rng(1)
    arms = rng.integers(0, 3, n)
    clicks = np.where(arms == 0, 0.0, rng.random(n) < 0.3)
    return Log(arms=arms, rewards=clicks, probabilities=1 / 3, n_arms=3)


def test_an_end_that_is_not_zero_is_not_printed_as_zero(capsys):
    found = evaluate(no_clicks(), [1.0, 0.0, 0.0], ["ips", "snips"], warn=False)
    assert found["ips"].value == 0.0
    assert found["ips"].high > 0.02
    shown = f"to {found['ips'].high:.4f}"
    assert shown in found.table()
    assert shown in found._repr_html_()


def test_no_reward_at_all_leaves_a_difference_open():
    # Both policies earned nothing on the rows that count, which is no proof that they never will.
    log = Log(arms=[0, 1] * 100, rewards=np.zeros(200), probabilities=0.5, n_arms=2)
    with pytest.warns(aw.offline.WeakLogWarning):
        found = compare(log, aw.Constant(0), aw.Constant(1), "snips")
    assert found.value == 0.0
    assert found.high > 3.0 / 100  # the rule of three for each of the two
    assert found.low == -found.high
    assert found.p_value > 0.05
    with pytest.warns(aw.offline.WeakLogWarning):
        sure = compare(Log(arms=[0, 1] * 100, rewards=[1.0, 0.0] * 100, probabilities=0.5, n_arms=2),
                       aw.Constant(0), aw.Constant(1), "snips")  # fmt: skip
    assert 0.9 < sure.low < 1.0
    assert sure.high == 1.0
    assert 0.0 < sure.p_value < 0.05


def test_lifts_say_their_kind_and_are_possible():
    log = Log(arms=[0, 1] * 100, rewards=[0.0, 1.0] * 100, probabilities=[0.5 - 1e-5, 0.5] * 100, n_arms=2)
    both = evaluate(log, {"a": [1.0, 0.0], "b": [0.0, 1.0]}, ["ips", "dr"], baseline="b", by=np.arange(200) // 67,
                    warn=False)  # fmt: skip
    for each in (both["a"], *both["a"].segments.values()):
        assert each.lift is not None
        assert each.lift.kind == "cressie-read"
        assert -1.0 <= each.lift.low <= each.lift.value <= each.lift.high <= 1.0
    assert "; dr, paired, cressie-read)" in both.table()
    assert "of lifts: cressie-read" in both.table()
    assert "of lifts: cressie-read" in both._repr_html_()
    assert json.loads(both.to_json())["policies"]["a"]["lift"]["kind"] == "cressie-read"
    one = evaluate(log, [1.0, 0.0], "dr", baseline="logged", interval="bernstein", warn=False)
    assert "paired, bernstein)" in one.table()


@pytest.mark.parametrize("several", [False, True])
def test_the_verdict_of_a_segment_is_in_every_view(several):
    log, _ = make(400, seed=2)
    small = np.where(np.arange(400) < 8, "few", "many")
    policy = aw.Constant(0)
    found = evaluate(log, {"zero": policy, "one": aw.Constant(1)} if several else policy, "ips", by=small, warn=False)
    inside = (found["zero"] if isinstance(found, Evaluations) else found).segments["few"]
    assert len(inside.weaknesses) > 1
    for text in inside.weaknesses:
        for view in (found.verdict, found.table(), found.to_json(), str(found), found._repr_html_()):
            assert text in view


def test_the_p_value_of_a_bootstrap_goes_with_its_interval():
    # A share of 60 rows: at the edge, where the two used to part. A failure means that an interval which misses 0 has
    # a p-value above .05, or the other way round.
    for seed in range(120):
        rng = np.random.default_rng(seed)
        arms = rng.integers(0, 2, 60)
        log = Log(arms=arms, rewards=(rng.random(60) < 0.3 + 0.28 * (arms == 0)) * 1.0, probabilities=0.5, n_arms=2)
        found = quietly(log, seed)
        assert (found.better != "neither") == (found.p_value < 0.05), seed


def quietly(log, seed):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare(log, aw.Constant(0), aw.Constant(1), "snips", interval="bootstrap", resamples=200, seed=seed)


def test_a_difference_of_bounded_rewards_is_judged_as_values_are():
    log, _ = make(2000, seed=1)
    found = compare(log, aw.Constant(0), aw.Constant(1))
    asked = compare(log, aw.Constant(0), aw.Constant(1), interval="cressie-read")
    normal = compare(log, aw.Constant(0), aw.Constant(1), interval="normal")
    assert found.kind == asked.kind == "cressie-read" and (found.low, found.high) == (asked.low, asked.high)
    assert found.high - found.low == pytest.approx(normal.high - normal.low, rel=0.4)


@pytest.mark.parametrize("interval", ["bernstein", "normal", "bootstrap", "auto"])
def test_the_interval_of_a_tuned_estimate_is_that_of_dr(interval):
    log, _ = make(1500, seed=3)
    found = evaluate(log, aw.Constant(1), ["dr", "switch-dr", "dros"], interval=interval, warn=False)
    for name in ("switch-dr", "dros"):
        assert "the interval is that of dr" in " ".join(found[name].warnings)
        assert found[name].low == pytest.approx(min(found["dr"].low, found[name].value), rel=1e-12)
        assert found[name].high == pytest.approx(max(found["dr"].high, found[name].value), rel=1e-12)
    fixed = evaluate(log, aw.Constant(1), [DR(), aw.offline.SwitchDR(tau=5.0)], interval=interval, warn=False)
    assert fixed["switch-dr"].high - fixed["switch-dr"].low < 1.2 * (fixed["dr"].high - fixed["dr"].low)


@pytest.mark.parametrize(("level", "one_sided"), [(0.995, None), (0.99, "lower")])
def test_answers_tables_pages_and_pictures_say_the_level_alike(level, one_sided, tmp_path):
    # Levels above .99 were rounded to 100 % in some tables, pages and pictures, and not in the answers.
    rng = np.random.default_rng(0)
    arms, segment = rng.integers(0, 3, 400), rng.integers(0, 2, 400).astype(str)
    log = Log(arms=arms, rewards=(rng.random(400) < 0.3) * 1.0, probabilities=1 / 3, n_arms=3)
    options = {"level": level, "one_sided": one_sided, "warn": False}
    first, other = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    found = [evaluate(log, first, by=segment, baseline="logged", **options), compare(log, first, other, **options),
             evaluate(log, {"a": first, "b": other}, baseline="a", simultaneous=False, **options),
             effects(log, 0, by=segment, **options)]  # fmt: skip
    found += [adaptive(log, level=level, warn=False)] if one_sided is None else []
    for result in found:
        text = result.text(True) if hasattr(result, "text") else str(result)
        if hasattr(result, "report"):
            result.report(tmp_path / "page.html")
            text += re.sub("<[^>]*>", " ", (tmp_path / "page.html").read_text())
        if hasattr(result, "plot"):
            labels = [label for axes in result.plot().axes for label in (axes.xaxis.label, axes.title)]
            text += " ".join(label.get_text() for label in labels)
        said = set(re.findall(r"([\d.]+)% +interval", text))
        assert said == {f"{100 * level:g}"}, (type(result).__name__, said)

"""What the page is told: policies that cannot judge a round, and numbers that nothing supports."""

from __future__ import annotations

import io
import json
import logging
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.cli.main import main
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.postgres import Postgres
from armwise.service.journal.events import Row
from armwise.service.log.earnings import MAX_POINTS, Earnings
from armwise.service.server.config import Config
from armwise.service.web.logging import set_up
from armwise.service.web.page import watch as watching
from armwise.service.web.page.rivals import Rival
from armwise.service.web.page.watch import Watch
from tests.service.database import Server
from tests.service.serving import Running


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look reads all there is, however slow the machine."""
    monkeypatch.setattr(watching, "MAX_WORK", 60.0)


def use(engine: Engine, ids: range, arms: int = 2, value: float | None = None) -> None:
    for k in ids:
        engine.decide("shop", b"{}", [b'"a"', b'"b"', b'"c"'][:arms], id=f"e{k}")
        engine.reward("shop", f"e{k}", k % 2 if value is None else value)


def looked(watch: Watch) -> dict[str, dict[str, Any]]:
    """The policies as the page gets them now, by name."""
    watch._answer = {}  # as if a second had passed
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
    assert "50.0% of its decisions are arms that are never tried here" in found["at random"]["warning"]
    assert found["always the first arm"]["warning"] == ""  # it is what was done
    assert found["always the first arm"]["uplift"] == 0.0
    watch.close()


def test_a_few_decisions_are_never_trusted(engines: Callable[..., Engine]) -> None:
    engine = engines()
    watch = Watch(engine, "shop")
    use(engine, range(4), value=1.0)
    assert all("too few decisions answer the question" in each["warning"] for each in looked(watch).values())
    watch.close()


def test_the_newest_decisions_show_what_they_earned(engines: Callable[..., Engine], clock: Any) -> None:
    """Silent ones were "open" for ever, and a second click, which counts for nothing, was added to the first."""
    engine = engines(window=60.0, default=-0.5)
    watch = Watch(engine, "shop")
    for id in ("silent", "twice", "late", "young"):
        clock.now += 61.0 if id == "young" else 1.0
        engine.decide("shop", b"{}", [b'"a"', b'"b"'], id=id)
        if id == "twice":
            engine.reward("shop", id, 1.0)
            engine.reward("shop", id, 1.0)
    engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="hidden", deferred=True)

    def listed() -> dict[str, float | None]:
        engine.wait_learnt()
        watch._answer = {}  # as if a second had passed
        return {each["id"]: each["reward"] for each in watch.look()["decisions"]}

    assert listed() == {"silent": -0.5, "twice": 1.0, "late": -0.5, "young": None, "hidden": None}
    engine.reward("shop", "late", 2.0)
    clock.now += 61.0
    assert listed() == {"silent": -0.5, "twice": 1.0, "late": 2.0, "young": -0.5, "hidden": None}
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
    monkeypatch.setattr(sys, "stderr", written)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)  # whatever was captured before
        set_up("info")
        warnings.warn("a number overflowed", RuntimeWarning, stacklevel=1)
        logging.captureWarnings(False)
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
    assert all(low <= mean <= high for _, mean, low, high, _, _ in rewards["curve"])
    assert rewards["n"] == 60
    watch.close()


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
    assert (rewards["n"], rewards["range"], rewards["curve"][-1][5]) == (7, [-3.0, 1.0], 7)
    watch.close()


def test_policies_that_change_are_compared_at_once(engines: Callable[..., Engine]) -> None:
    engine = engines()
    watch = Watch(engine, "shop")
    use(engine, range(3))
    assert list(looked(watch)) == ["live", "at random", "always the first arm"]
    engine.apply({"shop": Application(policies={"bold": {"class": "LinUCB"}}).creation()})
    assert list(looked(watch)) == ["live", "at random", "always the first arm", "bold"]
    watch.close()


def test_the_time_axis_is_true() -> None:
    """A fall at half of the time was drawn at 1 % of it: 10,000 rewards in the first second, 100 in the next hour."""
    earnings = Earnings()
    body = b'{"context":{},"arms":["a"],"p":[1.0],"arm":0,"version":0,"window":1000,"default":%s}'
    for k in range(10_000):
        earnings.take(1, Row(k, k // 10, "shop", "decision", f"e{k}", body % b"1.0"))
    for k in range(100):
        earnings.take(1, Row(10_000 + k, 1000 + 36_000 * (k + 1), "shop", "decision", f"f{k}", body % b"0.0"))
    points = earnings.judge(10_000_000, [0.0, 1.0]).over_time()
    assert len(points) <= MAX_POINTS
    times = [point[0] for point in points]
    assert times == sorted(times)
    assert (times[0], times[-1]) == (999, 3_601_000)
    assert sum(point[5] for point in points) == 10_100
    assert [point[4] for point in points] == [1.0] + [0.0] * (len(points) - 1)  # the rate at the time, beside the total
    assert points[-1][1] == pytest.approx(10_000 / 10_100)


def test_uplift_over_random_and_over_the_first_arm_come_with_valid_intervals(engines: Callable[..., Engine]) -> None:
    """The second arm pays: more than at random, more than the first, and sure of it."""
    engine = engines()
    for start in range(0, 600, 50):
        ids = [f"e{k}" for k in range(start, start + 50)]
        asked = [engine.prepare("shop", b"{}", [b'"a"', b'"b"'], id=id) for id in ids]
        engine.writer.write(asked)
        rewards = [float(write.event.arm == 1) for write in asked]  # type: ignore[union-attr]
        engine.writer.write([engine.prepare_reward("shop", id, value) for id, value in zip(ids, rewards)])
        engine.wait_learnt()
    watch = Watch(engine, "shop")
    shown = watch.look()
    over = shown["uplift"]
    assert over["random"]["n"] == over["first"]["n"] == 600
    assert over["random"]["low"] > 0.0 and over["random"]["low"] < 0.45 < over["random"]["high"]
    assert over["first"]["low"] > 0.0 and over["first"]["low"] < 0.9 < over["first"]["high"]
    live, random_, first = shown["policies"]
    assert (live["name"], live["uplift"]) == ("live", 0.0)
    assert live["value"] > random_["value"] > first["value"]
    assert first["value"] == pytest.approx(0.0, abs=0.1)
    assert shown["rewards"]["window"]["n"] == 500
    watch.close()


def test_what_is_remembered_of_a_decision_does_not_grow_with_its_arms(engines: Callable[..., Engine]) -> None:
    """Four viewers of applications with 1,000 arms raised memory to 1.4 GB: every decision was kept whole."""
    engine = engines(policies={"wide": {"class": "LinUCB"}})
    arms = [json.dumps({"id": f"a{k}", "features": {f"f{j}": k * j for j in range(5)}}).encode() for k in range(300)]
    watch = Watch(engine, "shop")
    for k in range(6):
        engine.decide("shop", b"{}", arms, id=f"e{k}")
        if k % 2:
            engine.reward("shop", f"e{k}", 1.0)
    watch.look()
    [source] = watch._feed.sources
    assert len(watch._earnings) == 6
    shown, to_judge = [each for _, each in watch._recent], [each for _, *each in watch._to_judge]
    held = pickle.dumps([watch._earnings.table(), watch._earnings._rewards, source.rows, shown, to_judge])
    assert len(held) < 5000
    watch.close()


def test_a_slow_policy_holds_nobody_up(engines: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """A LinThompson among the policies blocked everything for 31 s: a look works for so long and no longer."""
    engine = engines(policies={"slow": {"class": "LinUCB"}, "wide": {"class": "LinUCB"}})
    watch = Watch(engine, "shop")
    use(engine, range(30))
    engine.wait_learnt()
    now = [0.0]
    monkeypatch.setattr(watching, "MAX_WORK", 0.3)
    monkeypatch.setattr(time, "thread_time", lambda: now[0])
    follow = Rival.follow

    def takes(self: Rival, key: tuple[int, int], decision: Any, reward: float) -> None:
        now[0] += watching.MAX_WORK / 4
        follow(self, key, decision, reward)

    monkeypatch.setattr(Rival, "follow", takes)
    first = watch.look()
    assert first["waiting"] == 28  # two decisions for two policies each
    assert first["rewards"]["n"] == 30
    watch._rivals[0].too_slow = 1.5
    watch._answer = {}
    found = {each["name"]: each for each in watch.look()["policies"]}
    assert "it takes 1.5 s per decision, and is followed no longer" in found["slow"]["warning"]
    assert found["wide"]["n"] == 4
    watch.close()


def test_a_scrape_takes_no_session_for_each_application(server: Server, run: Callable[..., Running]) -> None:
    """Prometheus asks for all of them: 90 applications took all that PostgreSQL has, and no process could start."""
    url = server.new_database()
    names = [f"shop{k}" for k in range(20)]
    running = run(Config(storage=url, applications={name: Application(features={"dim": 8}) for name in names}))
    counting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    session = Postgres(url).connect_reading()
    [[before]] = session.execute(counting)
    for _ in range(2):
        text = running.client.get("/metrics").text
    assert all(f'armwise_judged_decisions{{application="{name}"}} 0' in text for name in names)
    assert session.execute(counting) == [(before,)]
    session.close()

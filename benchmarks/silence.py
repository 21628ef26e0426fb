"""Silence is an outcome: what agents learn, and what judges say, where clicks are reported and their lack is not.

``python -m benchmarks.silence agents`` runs agents in a ``Decider`` with a clock of its own: two arms at 6 % and 2 %,
clicks after an exponential delay of ten minutes, a decision every 10 s, a window of 1 h. It prints, per agent, the
better arm's share over the last fifth of the decisions, in each seed. ``told`` prints it for more agents, each beside
itself in a shop that reports every outcome at once; ``--record FILE`` keeps a line per agent and seed.

``python -m benchmarks.silence judges`` runs a shop with the default agent, arms at 2, 4 and 6 %, a window of a day and
a decision a minute, and asks every judge after 10 min, 1 h, 6 h, 1 day and 3 days: the page and its metrics, versions
of the model, and ``log()``, which reads what an export has, with ``evaluate``. It prints how often each interval holds
the truth: the mean expected reward, within the horizon that the judge states, of the arms that were played in the
judged decisions (of another policy: of the arms that it would have played). The page's and the versions' numbers come
from the functions behind them, on the events of a ``Decider`` in memory.

``whole`` asks the same of a ``Decider`` in a folder, from end to end: what the page is sent, the text of ``/metrics``,
versions of the model, ``log()``, and ``armwise journal export`` with ``armwise evaluate``. So that a thousand runs take
half an hour, visitors come six at a time: every two minutes in the first hour, every hour afterwards.
``--record FILE`` keeps a line per run, and goes on where an earlier call stopped, as ``told`` does.

``open`` asks what open decisions will probably bring, in shops with few and many rewards, clicks and amounts, and
prints how often the interval holds what they bring, as far as decisions as old have been seen.

``weeks`` runs two weeks of a shop whose arms change every day, and evaluates the export with no option at all.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import math
import random
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Raw

import armwise as aw
from armwise.cli.main import main as command
from armwise.service.decider.backend import APP
from armwise.service.decider.folder import Folder as InFolder
from armwise.service.engine.rollout import add_version
from armwise.service.journal.events import Creation, Decision, Reward, Row, Share
from armwise.service.log.earnings import Earnings
from armwise.service.web.metrics import Metrics
from armwise.service.web.page.watch import Watch

HOUR, DAY, DELAY = 3600.0, 86400.0, 600.0
AGENTS: dict[str, Callable[[int], aw.Agent | None]] = {
    "default": lambda seed: None,
    "Auto": lambda seed: aw.Auto(dim=128, seed=seed),
    "LinUCB": lambda seed: aw.LinUCB(seed=seed),
    "LinThompson": lambda seed: aw.LinThompson(seed=seed),
    "SquareCB": lambda seed: aw.SquareCB(seed=seed),
    "RegCB": lambda seed: aw.RegCB(seed=seed),
}
_ARMS = [lambda context: 0, lambda context: 1]  # as policies, or as experts
_RBF = aw.kernels.RBF()
_LAPLACIAN = np.array([[1.0, -1.0], [-1.0, 1.0]])


def _sees_all(dim: int) -> aw.LinearOracle:
    return aw.LinearOracle(dim=dim, n_arms=2)


# Every other agent that a Decider takes, but those of budgets: they count what each decision cost, and nobody reports
# the cost of silence; and Doubling, which must be told every outcome. CGPUCB is none: it wants rows of its own, not the
# encoder's.
OTHERS: dict[str, Callable[[int], aw.Agent | None]] = {
    "RandUCB": lambda seed: aw.RandUCB(seed=seed),
    "FastCB": lambda seed: aw.FastCB(seed=seed),
    "LogisticThompson": lambda seed: aw.LogisticThompson(dim=128, seed=seed),
    "Explore(RegCB)": lambda seed: aw.Explore(aw.RegCB(seed=seed), epsilon=0.1),
    "LinUCB(n_arms)": lambda seed: aw.LinUCB(dim=128, n_arms=2, seed=seed),
    "HybridLinUCB": lambda seed: aw.HybridLinUCB(dim=128, n_arms=2, shared=64, seed=seed),
    "CoFineUCB": lambda seed: aw.CoFineUCB(dim=128, subspace=np.eye(128)[:, :4], seed=seed),
    "SupLinUCB": lambda seed: aw.SupLinUCB(dim=128, horizon=20_000, seed=seed),
    "LinREL": lambda seed: aw.LinREL(dim=128, horizon=20_000, seed=seed),
    "SupLinREL": lambda seed: aw.SupLinREL(dim=128, horizon=20_000, seed=seed),
    "SpectralUCB": lambda seed: aw.SpectralUCB(_LAPLACIAN, horizon=20_000, seed=seed),
    "GPUCB": lambda seed: aw.GPUCB(_RBF, noise=0.3, budget=50, seed=seed),
    "KernelUCB": lambda seed: aw.KernelUCB(_RBF, budget=50, seed=seed),
    "SupKernelUCB": lambda seed: aw.SupKernelUCB(_RBF, horizon=20_000, budget=50, seed=seed),
    "Conservative": lambda seed: aw.Conservative(aw.LinUCB(seed=seed), baseline=0, alpha=0.1),
    "Mapped": lambda seed: aw.Mapped(aw.LinUCB(seed=seed), aw.features.Join([aw.features.Scale(128)])),
    "D3RB": lambda seed: aw.D3RB([aw.LinUCB(), aw.SquareCB()], seed=seed),
    "ED2RB": lambda seed: aw.ED2RB([aw.LinUCB(), aw.SquareCB()], seed=seed),
    "Corral": lambda seed: aw.Corral([aw.Explore(aw.LinUCB(), epsilon=0.1), aw.SquareCB()], horizon=20_000, seed=seed),
    "BetaThompson": lambda seed: aw.BetaThompson(n_arms=2, seed=seed),
    "UCB1": lambda seed: aw.UCB1(n_arms=2, seed=seed),
    "EpsilonGreedy": lambda seed: aw.EpsilonGreedy(n_arms=2, seed=seed),
    "Exp3": lambda seed: aw.Exp3(n_arms=2, seed=seed),
    "PerContext(UCB1)": lambda seed: aw.PerContext(aw.UCB1(n_arms=2, seed=seed)),
    "PolicyArms(UCB1)": lambda seed: aw.PolicyArms(aw.UCB1(n_arms=2, seed=seed), _ARMS, n_arms=2, sees="shared"),
    "Advised(Exp4)": lambda seed: aw.Advised(aw.Exp4(n_experts=2, n_arms=2, seed=seed), _ARMS, sees="shared"),
    "Advised(Exp4P)": lambda seed: aw.Advised(
        aw.Exp4P(n_experts=2, n_arms=2, horizon=20_000, seed=seed), _ARMS, sees="shared"
    ),
    "VE": lambda seed: aw.VE(aw.policies.Stumps(dim=128), n_arms=2, horizon=20_000, seed=seed),
    "EpochGreedy": lambda seed: aw.EpochGreedy(_sees_all(128), n_arms=2, seed=seed),
    "OnlineCover": lambda seed: aw.OnlineCover(_sees_all(128), n_arms=2, seed=seed),
    "ILoveToConBandits": lambda seed: aw.ILoveToConBandits(_sees_all(128), n_arms=2, seed=seed),
    "PolicyElimination": lambda seed: aw.PolicyElimination(_ARMS, n_arms=2, contexts=np.zeros((1, 128)), seed=seed),
    "RandomizedUCB": lambda seed: aw.RandomizedUCB(_ARMS, n_arms=2, seed=seed),
    "TrackAndStop": lambda seed: aw.TrackAndStop(n_arms=2, seed=seed),
    "TopTwoThompson": lambda seed: aw.TopTwoThompson(n_arms=2, seed=seed),
    "LUCB": lambda seed: aw.LUCB(n_arms=2, seed=seed),
    "SuccessiveElimination": lambda seed: aw.SuccessiveElimination(n_arms=2, seed=seed),
}


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def trade(
    shop: aw.Decider, clock: Clock, rates: dict[str, float], every: float, n: int, seed: int, told: bool = False
) -> Iterator[str]:
    """The arm of each decision; clicks are reported after a delay, their lack only if ``told``."""
    rng = random.Random(seed)
    waiting: list[tuple[float, str]] = []
    for _ in range(n):
        clock.now += every
        due = [(id, 1.0) for when, id in waiting if when <= clock.now]
        if due:
            waiting = [each for each in waiting if each[0] > clock.now]
            shop.reward_many(due)
        made = shop.decide({}, arms=list(rates))
        clicked = rng.random() < rates[made.arm]
        if told:
            shop.reward(made, float(clicked))
        elif clicked:
            waiting.append((clock.now + rng.expovariate(1.0 / DELAY), made.id))
        yield made.arm


def share(name: str, seed: int, n: int = 20_000, told: bool = False) -> float:
    """The better arm's share over the last fifth of the decisions."""
    clock = Clock()
    learn = "arrival" if told else None
    with aw.Decider(agent=(AGENTS | OTHERS)[name](seed), window=HOUR, clock=clock, seed=seed, learn=learn) as shop:
        arms = list(trade(shop, clock, {"worse": 0.02, "better": 0.06}, 10.0, n, seed, told))
    return arms[-n // 5 :].count("better") / (n // 5)


def agents(seeds: int, n: int, only: str) -> None:
    """Print the shares."""
    for name in AGENTS:
        if only in ("", name):
            shares = sorted(share(name, seed, n) for seed in range(seeds))
            enough = sum(each >= 0.85 for each in shares)
            print(
                f"{name:12} at least .85 in {enough} of {seeds}: {' '.join(f'{each:.2f}' for each in shares)}",
                flush=True,
            )


def told(seeds: int, n: int, only: str, first: int, record: str) -> None:
    """Print every agent's shares beside those of the same agent that is told each outcome at once."""
    done = {(name, seed): shares for name, seed, of, *shares in recorded(record) if of == n}
    for name in AGENTS | OTHERS:
        if only not in ("", name):
            continue
        for seed in range(first, first + seeds):
            if (name, seed) not in done:
                done[name, seed] = [share(name, seed, n, each) for each in (False, True)]
                keep(record, [name, seed, n, *done[name, seed]])
        silent, at_once = zip(*(shares for (whose, _), shares in done.items() if whose == name))
        differences = np.subtract(silent, at_once)
        error = differences.std(ddof=1) / len(silent) ** 0.5 if len(silent) > 1 else math.nan
        print(
            f"{name:21} silent {np.mean(silent):.3f} (least {min(silent):.2f}), told {np.mean(at_once):.3f} (least "
            f"{min(at_once):.2f}), difference {differences.mean():+.3f} +- {error:.3f}, {len(silent)} seeds",
            flush=True,
        )


def recorded(record: str) -> list[list[Any]]:
    """The runs that a file has, a line each."""
    path = Path(record)
    return [json.loads(line) for line in path.open()] if record and path.exists() else []


def keep(record: str, run: list[Any]) -> None:
    """Add a run to the file, if there is one."""
    if record:
        with open(record, "a") as lines:
            lines.write(json.dumps(run) + "\n")


# ---------------------------------------------------------------------- judges

TIMES = {"10 min": 600.0, "1 h": HOUR, "6 h": 6 * HOUR, "1 day": DAY, "3 days": 3 * DAY}
RATES = {"a": 0.02, "b": 0.04, "c": 0.06}


def within(horizon: float) -> float:
    """The part of clicks that have come within a horizon."""
    return 1.0 - math.exp(-min(horizon, DAY) / DELAY)


class Shop:
    """A Decider, and the same events as the page reads them from a journal; a version "even" is asked beside it."""

    def __init__(self, seed: int) -> None:
        self.clock, self._rng = Clock(), random.Random(seed)
        self.begun = self.clock.now
        self.decider = aw.Decider(window=DAY, clock=self.clock, seed=seed)
        self.earnings, self._waiting = Earnings(), list[tuple[float, str, int]]()
        self.expected: list[float] = []  # of the distribution that each decision was drawn from
        self.played: list[float] = []  # of the arm

    def trade(self, until: float, every: float) -> None:
        """Decide and report clicks until so many seconds have passed."""
        clock = self.clock
        while clock.now + every <= self.begun + until + 1e-6:
            clock.now += every
            now, seq = round(1000 * clock.now), len(self.played)
            for _, id, of in [each for each in self._waiting if each[0] <= clock.now]:
                self.decider.reward(id, 1.0)
                self.earnings.take(1, Row(0, now, "shop", "reward", id, b"", Reward(1.0, decision=of)))
            self._waiting = [each for each in self._waiting if each[0] > clock.now]
            made = self.decider.decide({}, arms=list(RATES))
            p, arm = [made.probabilities[name] for name in RATES], list(RATES).index(made.arm)
            among = {"v1": Share(1.0, p[arm], 1.0), "even": Share(0.0, 1 / 3, max(1 / 3 / each for each in p))}
            sent = [Raw(b'"%s"' % name.encode()) for name in RATES]
            asked = Decision(Raw(b"{}"), sent, p, arm, 0, round(1000 * DAY), 0.0, among=among)
            self.earnings.take(1, Row(seq, now, "shop", "decision", made.id, b"", asked))
            self.expected.append(sum(share * rate for share, rate in zip(p, RATES.values())))
            self.played.append(RATES[made.arm])
            if self._rng.random() < RATES[made.arm]:
                self._waiting.append((clock.now + self._rng.expovariate(1.0 / DELAY), made.id, seq))

    def judged(self) -> Iterator[tuple[str, bool, float]]:
        """(judge, whether its interval holds the truth, the interval's width)."""
        seen = self.earnings.judge(round(1000 * self.clock.now), [0.0, 1.0])
        share, n = within(seen.cohort.horizon), seen.n
        mean = seen.mean()
        truth = share * float(np.mean(self.played[:n]))
        yield "page, metrics", mean.low <= truth <= mean.high, mean.high - mean.low
        uplift, _, _ = seen.version("even", "v1", -1)
        truth = share * (0.04 - float(np.mean(self.expected[:n])))
        yield "versions", uplift.low <= truth <= uplift.high, uplift.high - uplift.low
        log = self.decider.log()
        assert log.cohort is not None
        share, n = within(log.cohort.horizon), len(log.rewards)
        for policy, target in (("uniform", [1 / 3] * 3), ("always b", [0.0, 1.0, 0.0])):  # both earn .04
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = aw.offline.evaluate(log, target, "snips", warn=False)["snips"]
            held = bool(found.low <= share * 0.04 <= found.high)
            yield f"log(), export + evaluate {policy}", held, found.high - found.low


class Folder:
    """A Decider in a folder, with a version "even" in shadow, and everything that a user may look at."""

    def __init__(self, seed: int, path: Path) -> None:
        self.clock, self._rng, self._path = Clock(), random.Random(seed), path
        self.begun = self.clock.now
        self.decider = aw.Decider(path / "shop", window=DAY, clock=self.clock, seed=seed)
        home = self.decider._backend
        assert isinstance(home, InFolder)
        self.engine = home.engine
        even = Creation({"class": "Explore", "epsilon": 1.0, "agent": {"class": "LinUCB"}})
        add_version(self.engine, APP, "even", even)
        self._waiting, self._expected, self._played = list[tuple[float, str]](), list[float](), list[float]()

    def trade(self, until: float, every: float) -> None:
        """Decide and report clicks until so many seconds have passed; six visitors come at a time."""
        clock, rates = self.clock, list(RATES.values())
        while clock.now + 6.0 * every <= self.begun + until + 1e-6:
            clock.now += 6.0 * every
            due = [(id, 1.0) for when, id in self._waiting if when <= clock.now]
            if due:
                self._waiting = [each for each in self._waiting if each[0] > clock.now]
                self.decider.reward_many(due)
            for made in self.decider.decide_many([{"context": {}, "arms": list(RATES)}] * 6):
                self._expected.append(sum(made.probabilities[name] * rate for name, rate in zip(RATES, rates)))
                self._played.append(RATES[made.arm])
                if self._rng.random() < RATES[made.arm]:
                    self._waiting.append((clock.now + self._rng.expovariate(1.0 / DELAY), made.id))

    def judged(self) -> Iterator[tuple[str, bool, float]]:
        """(judge, whether its interval holds the truth, the interval's width)."""
        self.engine.wait_learnt()
        watch = Watch(self.engine, APP)
        seen = watch.look()
        text = Metrics().render(self.engine, look=lambda app: watch.look()).decode()
        watch.close()
        horizon, n = seen["cohort"]["horizon"] or DAY, seen["cohort"]["n"]
        truth = within(horizon) * float(np.mean(self._played[:n]))
        low, high = seen["rewards"]["low"], seen["rewards"]["high"]
        yield "page", low <= truth <= high, high - low
        low, high = (
            float(re.findall(rf'armwise_reward_per_decision\{{.*end="{end}"\}} (\S+)', text)[0])
            for end in ("low", "high")
        )
        yield "metrics", low - 1e-6 <= truth <= high + 1e-6, high - low
        uplift = seen["versions"][1]["uplift"]
        truth = within(uplift["horizon"] or DAY) * (0.04 - float(np.mean(self._expected[: uplift["n"]])))
        yield "versions", uplift["low"] <= truth <= uplift["high"], uplift["high"] - uplift["low"]
        log = self.decider.log()
        assert log.cohort is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = aw.offline.evaluate(log, [1 / 3] * 3, "snips", warn=False)["snips"]
        truth = within(log.cohort.horizon) * 0.04
        yield "log() + evaluate", bool(found.low <= truth <= found.high), found.high - found.low
        path, said = self._path / "log.parquet", io.StringIO()
        words = ["--storage", str(self._path / "shop"), "--format", "parquet", "--output", str(path)]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            assert command(["journal", "export", *words]) == 0
            said.seek(0), said.truncate()
            assert command(["evaluate", str(path), "--policy", "uniform", "--json"]) == 0
        answer = json.loads(said.getvalue())["estimates"]["dr"]
        truth = within(aw.offline.Log.read(path).cohort.horizon) * 0.04  # type: ignore[union-attr]
        yield "export + evaluate", answer["low"] <= truth <= answer["high"], answer["high"] - answer["low"]


Answers = list[tuple[str, str, bool, float]]  # (judge, time, whether its interval held the truth, its width)


def judged_at(shop: Shop | Folder, days: float, every: float, denser: float) -> Answers:
    """What every judge answered at each time; ``denser`` is the pace of the first hour."""
    answers: Answers = []
    for name, moment in TIMES.items():
        if moment <= days * DAY:
            shop.trade(moment, denser if moment <= HOUR else every)
            answers += [(judge, name, held, width) for judge, held, width in shop.judged()]
    shop.decider.close()
    return answers


def tabulate(runs: list[Answers]) -> None:
    """Print how often each judge was right at each time, of the runs in which it answered."""
    found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for judge, name, held, width in itertools.chain.from_iterable(runs):
        found.setdefault((judge, name), []).append((held, width))
    for (judge, name), each in found.items():
        right, wide = (sum(column) / len(each) for column in zip(*each))
        print(f"{judge:34} {name:7} covers {right:.3f} of {len(each)}, mean width {wide:.3f}")


def judges(runs: int, days: float, every: float, first: int) -> None:
    """Judge a shop in memory."""
    tabulate([judged_at(Shop(seed), days, every, every) for seed in range(first, first + runs)])


def whole(runs: int, days: float, first: int, record: str) -> None:
    """Judge a shop in a folder; what ``record`` has is not run again."""
    done: dict[int, Answers] = dict(recorded(record))
    for seed in range(first, first + runs):
        if seed not in done:
            with tempfile.TemporaryDirectory() as folder:
                done[seed] = judged_at(Folder(seed, Path(folder)), days, 600.0, 20.0)
            keep(record, [seed, done[seed]])
    tabulate(list(done.values()))


OPEN = {  # decisions, seconds between two, rewards of a decision, one of them
    "30 decisions, clicks of 5 %": (30, 10.0, 0.05, "click"),
    "100 decisions, clicks of 5 %": (100, 10.0, 0.05, "click"),
    "400 decisions, clicks of 2 %": (400, 10.0, 0.02, "click"),
    "400 decisions, clicks of 5 %": (400, 10.0, 0.05, "click"),
    "2,000 decisions, clicks of 5 %": (2000, 2.0, 0.05, "click"),
    "400 decisions, few amounts": (400, 10.0, 0.05, "amount"),
    "400 decisions, many amounts": (400, 10.0, 0.3, "amount"),
    "400 decisions, gains and losses": (400, 10.0, 0.3, "gain or loss"),
}


def foretold(seed: int, n: int, every: float, rate: float, kind: str) -> tuple[bool, float]:
    """Whether what open decisions bring lies between the ends that were told, and the width of these."""
    rng, earnings, future, end = np.random.default_rng(seed), Earnings(), 0.0, n * every
    draw = {"click": lambda: 1.0, "amount": lambda: rng.exponential(2.0), "gain or loss": lambda: rng.normal(0.3, 1.0)}
    for k in range(n):
        made = Decision(Raw(b"{}"), [Raw(b'"a"')], [1.0], 0, 0, round(1000 * DAY), 0.0, "sum")
        earnings.take(1, Row(k, round(1000 * every * k), "shop", "decision", f"e{k}", b"", made))
        for _ in range(int(rng.random() < rate) if kind == "click" else rng.poisson(rate)):
            after, value = rng.exponential(DELAY), draw[kind]()
            if every * k + after <= end:
                came = Row(n + k, round(1000 * (every * k + after)), "shop", "reward", f"e{k}", b"", Reward(value, k))
                earnings.take(1, came)
            elif after <= end:
                future += value
    told = earnings.judge(round(1000 * end), [0.0, 1.0]).open()
    return told["low"] <= future <= told["high"], told["high"] - told["low"]


def open_ones(runs: int, first: int) -> None:
    """Print how often what open decisions bring was foretold."""
    for name, asked in OPEN.items():
        right, width = np.mean([foretold(seed, *asked) for seed in range(first, first + runs)], axis=0)
        print(f"{name:32} covers {right:.3f} of {runs}, mean width {width:.1f}", flush=True)


def weeks(seeds: int, every: float) -> None:
    """Print what a new user sees: an export of two weeks, in which four of twelve arms are on offer each day."""
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            clock, rng = Clock(), random.Random(seed)
            begun, waiting = clock.now, list[tuple[float, str]]()
            rates = {f"offer {k}": rng.uniform(0.02, 0.06) for k in range(12)}
            with aw.Decider(Path(folder, "shop"), window=DAY, clock=clock, seed=seed) as shop:
                while clock.now < begun + 14 * DAY:
                    clock.now += every
                    if due := [(id, 1.0) for when, id in waiting if when <= clock.now]:
                        waiting = [each for each in waiting if each[0] > clock.now]
                        shop.reward_many(due)
                    day = int((clock.now - begun) // DAY)
                    made = shop.decide(
                        {"hour": int(clock.now // HOUR) % 24}, [f"offer {(day + k) % 12}" for k in range(4)]
                    )
                    if rng.random() < rates[made.arm]:
                        waiting.append((clock.now + rng.expovariate(1.0 / DELAY), made.id))
            path = str(Path(folder, "log.parquet"))
            assert (
                command(["journal", "export", "--storage", f"{folder}/shop", "--format", "parquet", "--output", path])
                == 0
            )
            if not seed:
                assert command(["evaluate", path]) == 0
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                assert command(["evaluate", path, "--json"]) == 0
            found = {name: each["estimates"]["dr"] for name, each in json.loads(said.getvalue())["policies"].items()}
            held = sum(each["low"] <= rates[name.removeprefix("arm:")] <= each["high"] for name, each in found.items())
            print(f"seed {seed}: {held} of {len(found)} intervals hold what their arm is worth", flush=True)


def main() -> None:
    """Run one of the tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["agents", "told", "judges", "whole", "open", "weeks"])
    parser.add_argument("--seeds", type=int, default=20, help="runs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--only", default="", help="one agent")
    parser.add_argument("--days", type=float, default=3.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two decisions of a shop")
    parser.add_argument("--record", default="", help="a file of runs, of which none is run twice")
    args = parser.parse_args()
    if args.task == "agents":
        agents(args.seeds, args.decisions, args.only)
    elif args.task == "told":
        told(args.seeds, args.decisions, args.only, args.first, args.record)
    elif args.task == "judges":
        judges(args.seeds, args.days, args.every, args.first)
    elif args.task == "open":
        open_ones(args.seeds, args.first)
    elif args.task == "weeks":
        weeks(args.seeds, args.every)
    else:
        whole(args.seeds, args.days, args.first, args.record)


if __name__ == "__main__":
    main()

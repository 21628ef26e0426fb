"""Which agent and how many hashed features serve named decisions best: three worlds in which arms come and go.

    python -m benchmarks.decider_defaults [rounds] [seeds]

Printed: the mean reward of a decision as a share of the way from playing at random (0) to playing best (1), over all
rounds, so that learning quickly counts; the mean of three worlds and of several seeds. Every reward comes at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import armwise as aw


class Round(NamedTuple):
    """What is asked, and what each arm would bring on average."""

    context: dict[str, Any]
    arms: list[Any]
    means: list[float]


World = Callable[[np.random.Generator, int], list[Round]]


def shop(rng: np.random.Generator, rounds: int) -> list[Round]:
    """Six offers, ids only; every 300 rounds one leaves and another comes. Clicks: who likes what is a matter of device
    and country."""
    tastes: dict[str, dict[str, float]] = {}

    def fresh(n: int) -> str:
        values = ["phone", "desktop", "tablet", "no", "se", "de", "fr", "us"]
        tastes[f"offer{n}"] = {value: float(rng.normal(0.0, 1.0)) for value in values}
        return f"offer{n}"

    offers, found = [fresh(n) for n in range(6)], []
    for t in range(rounds):
        if t and t % 300 == 0:
            offers = [*offers[1:], fresh(6 + t)]
        context = {"device": str(rng.choice(["phone", "desktop", "tablet"])), "hour": int(rng.integers(24)),
                   "country": str(rng.choice(["no", "se", "de", "fr", "us"])), "returning": bool(t % 3)}  # fmt: skip
        logits = [tastes[offer][context["device"]] + tastes[offer][context["country"]] - 1.5 for offer in offers]
        found.append(Round(context, list(offers), [1.0 / (1.0 + float(np.exp(-x))) for x in logits]))
    return found


def news(rng: np.random.Generator, rounds: int) -> list[Round]:
    """Eight of forty articles with features, replaced all the time: a reader's interest must meet the topic."""
    topics = ["sport", "politics", "music", "film", "science", "food"]
    likes = {(a, b): float(rng.normal(0.0, 1.0)) + 2.0 * (a == b) for a in topics for b in topics}

    def fresh(n: int) -> dict[str, Any]:
        return {"id": f"article{n}", "topic": str(rng.choice(topics)), "length": float(rng.gamma(4.0, 200.0)),
                "video": bool(rng.random() < 0.3)}  # fmt: skip

    pool, found = [fresh(n) for n in range(40)], []
    for t in range(rounds):
        if t % 25 == 0:
            pool = [*pool[1:], fresh(40 + t)]
        arms = [pool[i] for i in rng.choice(40, 8, replace=False)]
        context = {"interest": str(rng.choice(topics)), "age": float(rng.normal(40.0, 15.0)), "evening": bool(t % 2)}
        logits = [
            likes[context["interest"], arm["topic"]] - 1.5 - 0.0005 * arm["length"]
            + 0.8 * arm["video"] * (1.0 if context["age"] < 35.0 else -1.0)
            for arm in arms
        ]  # fmt: skip
        found.append(Round(context, arms, [1.0 / (1.0 + float(np.exp(-x))) for x in logits]))
    return found


def prices(rng: np.random.Generator, rounds: int) -> list[Round]:
    """Ten tariffs and twenty numbers about a customer, of which some matter, linearly, and differently to each."""
    weights = rng.normal(0.0, 1.0, (10, 20)) * (rng.random((10, 20)) < 0.3)
    found = []
    for t in range(rounds):
        x = rng.normal(0.0, 1.0, 20)
        away = (t // 500) % 10  # one of the tariffs is not to be had
        arms = [f"tariff{k}" for k in range(10) if k != away]
        means = [float(weights[k] @ x) for k in range(10) if k != away]
        found.append(Round({f"x{j}": float(v) for j, v in enumerate(x)}, arms, means))
    return found


WORLDS: dict[str, World] = {"shop": shop, "news": news, "prices": prices}
LIN: dict[str, Any] = {"class": "LinUCB"}


def floored(agent: dict[str, Any], epsilon: float = 0.1) -> dict[str, Any]:
    return {"class": "Explore", "epsilon": epsilon, "agent": agent}


AGENTS: dict[str, dict[str, Any]] = {
    "LinUCB(alpha=0.5, lam=1)": floored(LIN | {"alpha": 0.5, "lam": 1.0}),
    "LinUCB(alpha=0.5)": floored(LIN | {"alpha": 0.5}),
    "LinUCB(alpha=0.2)": floored(LIN | {"alpha": 0.2}),
    "LinUCB()": floored(LIN),
    "Auto(floor=0.1)": {"class": "Auto", "floor": 0.1},
}


def share(spec: dict[str, Any], dim: int, world: World, rounds: int, seed: int) -> float:
    """How far from random to best an agent comes in a world."""
    rng = np.random.default_rng([seed, 18])
    decider = aw.Decider(agent=spec, dim=dim, seed=seed)
    got = best = even = 0.0
    noise = np.random.default_rng([seed, 19])
    for each in world(rng, rounds):
        d = decider.decide(each.context, each.arms)
        mean = each.means[list(d.probabilities).index(d.arm)]
        normal = world is prices
        decider.reward(d, mean + float(noise.normal(0.0, 0.5)) if normal else float(noise.random() < mean))
        got, best, even = got + mean, best + max(each.means), even + sum(each.means) / len(each.means)
    return (got - even) / (best - even)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"{rounds} rounds, {seeds} seeds; share of the way from random to best")
    print(f"{'agent':28s}{'dim':>5s}" + "".join(f"{name:>9s}" for name in WORLDS) + f"{'mean':>9s}{'us':>8s}")
    for dim in (64, 128, 256):
        for name, spec in AGENTS.items():
            if name.startswith("Auto") and dim == 256:
                continue
            started = time.process_time()
            row = [np.mean([share(spec, dim, w, rounds, s) for s in range(seeds)]) for w in WORLDS.values()]
            used = (time.process_time() - started) / (rounds * seeds * len(WORLDS)) * 1e6
            print(
                f"{name:28s}{dim:5d}" + "".join(f"{x:9.3f}" for x in row) + f"{np.mean(row):9.3f}{used:8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

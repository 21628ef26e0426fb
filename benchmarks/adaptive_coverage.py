"""How often 95 % intervals from an agent's own log hold the truth: adaptive weights beside the plain mean.

For each agent and world: the value of the best and of the worst arm (never the agent's target), and the agent's lift
over a control arm. ``python -m benchmarks.adaptive_coverage --runs 1000``
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import armwise as aw
from benchmarks.common import parser

K, D = 3, 2
SLOPES = np.array([[0.2, 0.0], [-0.1, 0.15], [-0.1, -0.15]])
WORLDS = {
    "equal arms": (np.array([0.5, 0.5, 0.5]), 0.0),
    "one better": (np.array([0.6, 0.5, 0.5]), 0.0),
    "curved": (np.array([0.5, 0.45, 0.4]), 0.15),  # no agent's model holds
}
AGENTS: dict[str, tuple[bool, Callable[[int], Any]]] = {
    "EpsilonGreedy(.1)": (False, lambda seed: aw.EpsilonGreedy(n_arms=K, epsilon=0.1, seed=seed)),
    "Exp3(.1)": (False, lambda seed: aw.Exp3(n_arms=K, gamma=0.1, seed=seed)),
    "LinUCB + Explore(.1)": (True, lambda seed: aw.Explore(aw.LinUCB(D, n_arms=K, seed=seed), 0.1, seed=seed)),
    "LinThompson(20 draws) + Explore(.1)": (
        True, lambda seed: aw.Explore(aw.LinThompson(D, n_arms=K, draws=20, seed=seed), 0.1, seed=seed)
    ),
    "LinThompson(20 draws)": (True, lambda seed: aw.LinThompson(D, n_arms=K, draws=20, seed=seed)),
    "Auto(floor=.1)": (True, lambda seed: aw.Auto(D, n_arms=K, floor=0.1, seed=seed)),
    "SquareCB": (True, lambda seed: aw.SquareCB(D, n_arms=K, seed=seed)),
}  # fmt: skip


def expectation(world: str, x: np.ndarray) -> np.ndarray:
    """Each round's expected reward of every arm; over all contexts an arm's mean is the world's."""
    means, curve = WORLDS[world]
    bent = np.column_stack([np.sin(3.0 * x[:, 0]), 2.0 * (x[:, 1] ** 2 - 1 / 3), -np.sin(3.0 * x[:, 1])])
    return np.asarray(means + x @ SLOPES.T + curve * bent)


def one_log(agent: Any, contextual: bool, world: str, rounds: int, seed: int) -> tuple[Any, np.ndarray]:
    """A log of the agent, and the mean reward of each round's arm."""
    rng = np.random.default_rng([seed, 20_260])
    x = rng.uniform(-1.0, 1.0, (rounds, D))
    expected = expectation(world, x)
    played = agent.play(x if contextual else None, (rng.random((rounds, K)) < expected).astype(float))
    log = aw.offline.Log(
        contexts=x if contextual else None, arms=played.arms, rewards=played.rewards,
        probabilities=played.probabilities, n_arms=K,
    )  # fmt: skip
    return log, expected[np.arange(rounds), played.arms]


def measure(name: str, world: str, runs: int, rounds: int, first: int = 0, **options: Any) -> dict[str, float]:
    """Coverage of the adaptive and the plain interval over ``runs`` logs; the shares warned of, and by likelihood."""
    contextual, make = AGENTS[name]
    means = WORLDS[world][0]
    held: dict[str, list[bool]] = {
        key: [] for key in ("best", "worst", "plain best", "plain worst", "lift", "warned", "likelihood", "simulated")
    }
    width: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", aw.offline.WeakLogWarning)
        for run in range(first, first + runs):
            agent = make(run)
            log, earned = one_log(agent, contextual, world, rounds, run)
            mine = {"agent": agent, "seed": run} if options.get("interval") == "simulated" else {}
            found = aw.offline.adaptive(log, control=1, **options, **mine)
            for label, arm in (("best", 0), ("worst", 2)):
                e, p = found[f"arm {arm}"], found.plain[f"arm {arm}"]
                held[label].append(e.low <= means[arm] <= e.high)
                held[f"plain {label}"].append(p.low <= means[arm] <= p.high)
            lift = found["agent - control"]
            held["lift"].append(lift.low <= earned.mean() - means[1] <= lift.high)
            held["warned"].append(bool(found.verdict))
            held["likelihood"].append(found["arm 2"].interval == "likelihood")
            held["simulated"].append(found["arm 2"].interval == "simulated")
            width.append(found["arm 2"].high - found["arm 2"].low)
    return {key: float(np.mean(value)) for key, value in held.items()} | {"width": float(np.mean(width))}


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--runs", type=int, default=1000)
    made.add_argument("--rounds", type=int, default=1000)
    made.add_argument("--weights", default="equal", choices=("equal", "stable", "minimal"))
    made.add_argument("--interval", default="auto")
    made.add_argument("--simulations", type=int, default=399, help="of each log, for --interval simulated")
    made.add_argument("--first", type=int, default=0, help="the first seed")
    made.add_argument("--worlds", default=",".join(WORLDS), help="names, separated by commas")
    made.add_argument("--agents", default=",".join(AGENTS), help="names, separated by commas")
    args = made.parse_args()
    for asked, known, what in ((args.agents, AGENTS, "--agents"), (args.worlds, WORLDS, "--worlds")):
        if unknown := [name for name in asked.split(",") if name not in known]:
            made.error(f"{what} must be of {', '.join(known)}, got {', '.join(unknown)}")
    print(f"{args.runs} runs of {args.rounds} rounds, {args.weights} weights, {args.interval} intervals at 95 %")
    print(
        f"{'agent':38s}{'world':13s}{'best':>7s}{'worst':>7s}{'lift':>7s}{'width':>7s}   "
        "plain: best  worst  warned  likelihood  simulated"
    )
    for name in args.agents.split(","):
        for world in args.worlds.split(","):
            c = measure(name, world, args.runs, args.rounds, args.first, weights=args.weights, interval=args.interval,
                        simulations=args.simulations)  # fmt: skip
            print(f"{name:38s}{world:13s}{c['best']:7.3f}{c['worst']:7.3f}{c['lift']:7.3f}{c['width']:7.3f}"
                  f"{c['plain best']:15.3f}{c['plain worst']:7.3f}{c['warned']:8.2f}"
                  f"{c['likelihood']:12.2f}{c['simulated']:11.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

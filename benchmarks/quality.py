"""Progressive error on classification sets as bandits, each side at its best over a small grid of its own.

    python -m benchmarks.quality [--data FOLDER] [--rows 1000] [--peers-python PYTHON]

A row is a round: the agent names a class and hears only whether it was right; the error is the share of wrong names
from the first round on. Everybody sees the same rows in the same order (scaled to [0, 1], with a constant), learns
after every round, and is given the best of its settings on that very order; small sets are repeated in other orders,
and the error is the mean. FOLDER adds optdigits.parquet and letter.parquet to scikit-learn's digits, wine,
breast_cancer and iris. Runs in the peers' environment.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import armwise as aw
from benchmarks import common, peers

Rounds = tuple[np.ndarray, np.ndarray, np.ndarray]
Contest = dict[str, Callable[[Rounds], float]]
GRID = [(alpha, lam) for alpha in (0.1, 0.3, 1.0) for lam in (0.1, 1.0)]  # the same for all who have LinUCB
SCALES = (0.1, 0.3)  # of Thompson sampling


def of_armwise() -> Contest:
    """The linear agents over a grid, and the regression agents as they are."""
    makers: dict[str, Callable[[int, int], aw.Agent]] = {}
    for alpha, lam in GRID:
        makers[f"LinUCB alpha={alpha} lam={lam}"] = lambda d, K, a=alpha, m=lam: aw.LinUCB(d, a, m, n_arms=K, seed=1)
    for v in SCALES:
        makers[f"LinThompson v={v} lam=1.0"] = lambda d, K, v=v: aw.LinThompson(d, v, 1.0, n_arms=K, seed=1)
    makers["SquareCB"] = lambda d, K: aw.SquareCB(d, n_arms=K, seed=1)
    makers["RegCB"] = lambda d, K: aw.RegCB(d, n_arms=K, seed=1)

    def error(rounds: Rounds, make: Callable[[int, int], aw.Agent]) -> float:
        X, _, R = rounds
        return 1.0 - float(make(X.shape[1], R.shape[1]).play(X, R).rewards.mean())

    return {name: lambda rounds, make=make: error(rounds, make) for name, make in makers.items()}


def of_vw() -> Contest:
    """Its exploration algorithms over their own parameter and the learning rate; costs 0/1 and -1/0."""
    import vowpalwabbit

    kinds = ["--epsilon 0", "--epsilon 0.05", "--squarecb --gamma_scale 10", "--squarecb --gamma_scale 100",
             "--regcbopt --mellowness 0.1", "--regcbopt --mellowness 0.001", "--cover 4"]  # fmt: skip
    settings = [f"{kind} -l {rate}{costs}" for kind in kinds for rate in (0.5, 5)
                for costs in ("", " --loss0 -1 --loss1 0")]  # fmt: skip

    def error(rounds: Rounds, setting: str) -> float:
        X, y, R = rounds
        kind = "" if "--cover" in setting else "--cb_type mtr"
        vw = vowpalwabbit.Workspace(f"--cbify {R.shape[1]} --cb_explore_adf {kind} {setting} --quiet --random_seed 1")
        for line in common.vw_lines(X, y):
            vw.learn(line)
        loss = vw.get_sum_loss() / len(y)
        vw.finish()
        return float(loss)  # it reports the share of wrong labels, whatever --loss0 and --loss1 are

    return {setting: lambda rounds, s=setting: error(rounds, s) for setting in settings}


def of_mabwiser() -> Contest:
    from mabwiser.mab import MAB, LearningPolicy

    policies: dict[str, Any] = {
        f"LinUCB alpha={alpha} l2_lambda={lam}": LearningPolicy.LinUCB(alpha=alpha, l2_lambda=lam)
        for alpha, lam in GRID
    }
    policies |= {f"LinTS alpha={v} l2_lambda=1.0": LearningPolicy.LinTS(alpha=v, l2_lambda=1.0) for v in SCALES}

    def error(rounds: Rounds, policy: Any) -> float:
        X, y, R = rounds
        mab = MAB(list(range(R.shape[1])), policy, seed=1)
        mab.fit([0], [R[0, 0]], X[:1])  # it wants a row before it predicts: the first, whatever it brings
        wrong = 1.0 - R[0, 0]
        for t in range(1, len(y)):
            arm = mab.predict(X[t : t + 1])
            wrong += 1.0 - R[t, arm]
            mab.partial_fit([arm], [R[t, arm]], X[t : t + 1])
        return wrong / len(y)

    return {name: lambda rounds, p=policy: error(rounds, p) for name, policy in policies.items()}


def of_contextualbandits() -> Contest:
    from contextualbandits.online import LinTS, LinUCB

    def linucb(K: int, alpha: float, lam: float) -> Any:
        return LinUCB(nchoices=K, alpha=alpha, lambda_=lam, fit_intercept=False, random_state=1, njobs=1)

    def lints(K: int, v: float, lam: float) -> Any:
        return LinTS(nchoices=K, v_sq=v, lambda_=lam, fit_intercept=False, random_state=1, njobs=1)

    def error(rounds: Rounds, make: Callable[..., Any], one: float, lam: float) -> float:
        X, y, R = rounds
        agent, wrong, arm = make(R.shape[1], one, lam), 0.0, 0
        for t in range(len(y)):
            if t:
                arm = int(agent.predict(X[t : t + 1])[0])
            wrong += 1.0 - R[t, arm]
            agent.partial_fit(X[t : t + 1], np.array([arm]), np.array([R[t, arm]]))
        return wrong / len(y)

    found: Contest = {}
    for alpha, lam in GRID:
        found[f"LinUCB alpha={alpha} lambda={lam}"] = lambda rounds, a=alpha, m=lam: error(rounds, linucb, a, m)
    for v in SCALES:
        found[f"LinTS v_sq={v * v:.2g} lambda=1.0"] = lambda rounds, v=v: error(rounds, lints, v * v, 1.0)
    return found


def best(contest: Contest, orders: list[Rounds]) -> tuple[float, str]:
    errors = {name: float(np.mean([play(rounds) for rounds in orders])) for name, play in contest.items()}
    name = min(errors, key=errors.__getitem__)
    return errors[name], f"{name}, best of {len(errors)}"


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__, data="optdigits.parquet and letter.parquet", peers=True)
    parser.add_argument("--rows", type=int, default=1000, help="of each set at most")
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not options.here:
        more = ["--data", str(options.data.resolve())] if options.data else []
        more += ["--sets", *options.sets] if options.sets else []
        words = ["--here", "--rows", str(options.rows), *more]
        print(peers.run("benchmarks.quality", *words, python=options.peers_python), end="")
        return
    from sklearn import datasets

    names = options.sets or ["iris", "wine", "breast_cancer", "digits", *(["optdigits", "letter"] * bool(options.data))]
    contests = {"VW": of_vw(), "contextualbandits": of_contextualbandits(), "MABWiser": of_mabwiser()}
    for name in names:
        own = getattr(datasets, f"load_{name}", None)
        X, y = own(return_X_y=True) if own else common.labelled(common.find(options.data, f"{name}.parquet"))
        n = min(len(y), options.rows)
        repeats = 3 if n < 1000 else 1
        orders = [tuple(part[:n] for part in common.as_rounds(X, y, seed)) for seed in range(repeats)]
        ours, how = best(of_armwise(), orders)
        for peer, contest in contests.items():
            error, setting = best(contest, orders)
            what = f"{name}: error over {n:,} rounds, {int(y.max()) + 1} arms"
            ratio = error / ours if ours else None
            common.report(what, f"{ours:.4f}", peer, f"{error:.4f}", ratio, f"armwise: {how}; {peer}: {setting}")


if __name__ == "__main__":
    main()

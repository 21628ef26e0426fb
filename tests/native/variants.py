"""One recipe per kernel: from a variant of the extension to all that the kernel returns and writes, on fixed input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RECIPES: dict[str, Callable[[Any], object]] = {}
K, D, T = 11, 21, 60  # no multiple of four or eight: the remainders of every loop are met


def recipe(*names: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """The kernels, as room.name, that one function of the module exercises."""

    def register(function: Callable[..., object]) -> Callable[..., object]:
        for name in names:
            RECIPES[name] = function
        return function

    return register


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def ridge_models(module: Any, M: int = 1, d: int = D, counted: bool = False) -> np.ndarray:
    """Models that have learnt 40 rows each."""
    P = -(-d // 8) * 8
    models = np.zeros((M, P + 1 + 2 * counted, P))
    models[:, range(d), range(d)] = 1.3
    for m in range(M):
        module.ridge.update_rows(models[m], numbers(40, d, seed=m), numbers(40, seed=m + 100))
    return models


NONE = np.zeros((1, 0, 0)), np.zeros((1, 0))
SPREAD = (0.4, 0.3, 1.1, 0.9)


@recipe(
    "choice.finite",
    "choice.all_finite",
    "choice.all_within",
    "choice.first_best",
    "choice.best_arms",
    "choice.draw",
)
@recipe("choice.tied_probabilities", "choice.row_argmax")
def choice(module: Any) -> object:
    c, scores = module.choice, numbers(K).round(1)
    p = np.abs(scores) / np.abs(scores).sum()
    wide = numbers(T, K)
    return (
        c.all_within(wide),
        c.finite(1.0), c.finite(np.nan), c.all_finite(wide), c.all_finite(np.append(wide, np.inf)),
        c.first_best(scores), c.best_arms(scores), [c.draw(p, u) for u in np.linspace(0, 1, 99)],
        c.tied_probabilities(scores), c.row_argmax(wide),
    )  # fmt: skip


@recipe("ridge.update", "ridge.update_rows", "ridge.log_det", "ridge.refit", "ridge.learn", "ridge.Optimist.learn")
def ridge_learns(module: Any) -> object:
    r, models, d = module.ridge, ridge_models(module, 3), D
    r.update(models[0], numbers(d), 0.3)
    assert r.Optimist(models, d, True, True, 0.5, 1.7, 0.4, 0.2, 0.1).learn(numbers(d), (1, 0.5), -2.0)
    gram, moment = np.tile(2.0 * np.eye(d), (3, 1, 1)), numbers(9, d)
    r.learn(models, gram, moment, 2, numbers(K, d), 3, 0.7, 1.7, 0.95)
    refitted, A = np.zeros_like(models[0]), numbers(d, 3 * d)
    r.refit(refitted, A @ A.T, numbers(d), numbers(0))
    more, more_gram, more_moment = ridge_models(module, 3, counted=True), gram.copy(), moment.copy()
    r.learn(more, more_gram, more_moment, 2, numbers(K, d), 3, 0.7, 1.7, 0.95)
    r.refit(more[1], A @ A.T, numbers(d), numbers(d, seed=2))
    return models, gram, moment, refitted, r.log_det(models[0], d), more, more_gram, more_moment


@recipe("ridge.estimate_into", "ridge.estimate_all", "ridge.optimistic", "ridge.Optimist", "ridge.Optimist.choose")
@recipe("ridge.widen")
def ridge_estimates(module: Any) -> object:
    r, one, many, X = module.ridge, ridge_models(module), ridge_models(module, 5), numbers(K, D)
    means, widths = np.empty(K), np.empty(K)
    r.estimate_into(one[0], X, means, widths)
    return (
        means, widths, r.estimate_all(many, X[0]), r.optimistic(one, X, 1.7, 0.4, 0.0, 1.0),
        r.optimistic(many, X[:1], 1.7, 0.4, 0.2, 0.1),
        r.Optimist(many, D, True, True, 0.5, 1.7, 0.4, 0.2, 0.1).choose(X[0]),
        [r.Optimist(one, D, False, True, 0.5, 1.7, 0.4, 0.0, 1.0).choose(numbers(n, D, seed=n)) for n in range(1, 30)],
        [r.Optimist(one, D, False, True, 0.5, 1.7, 0.4, 0, 1, 0.3, 1.1).choose(numbers(n, D)) for n in range(1, 30)],
        r.optimistic(one, X, 1.7, 0.4, 0.0, 1.0, 0.3, 1.1), r.optimistic(many, X[:1], 1.7, 0.4, 0.0, 1.0, 0.3, 1.1),
        r.widen(means, widths, 0.4, 0.3, 1.1),
    )  # fmt: skip


def block(module: Any, play: Callable[..., Any]) -> object:
    """A block of rounds over one model and over one model per arm: what is played, and the models afterwards."""
    results: list[object] = []
    for M in (1, K):
        models = ridge_models(module, M)
        contexts = numbers(T, K if M == 1 else 1, D)
        results += [play(models, contexts, numbers(T, K, seed=9), rng()), models]
    return results


@recipe("ridge.play_optimistic")
def ridge_play(module: Any) -> object:
    play = module.ridge.play_optimistic
    return [
        block(module, lambda models, X, r, g: play(models, *NONE, X, r, 1.7, 1.0, 0.4, 0.2, 0.1, 0.0, 1.0, g)),
        block(module, lambda models, X, r, g: play(models, *NONE, X, r, 1.7, 1.0, 0.4, 0.0, 1.0, 0.3, 1.1, g)),
    ]


@recipe("thompson.scale", "thompson.posterior_scores", "thompson.compete", "thompson.score_posterior")
def thompson(module: Any) -> object:
    t, one, many, X = module.thompson, ridge_models(module), ridge_models(module, 5), numbers(K, D)
    return (
        t.scale(7, 0.3, 0.2, 0.1), t.posterior_scores(one, X, 0.4, numbers(D)),
        t.posterior_scores(many, X[:1], 0.4, numbers(5)),
        t.score_posterior(one, X, *SPREAD), t.score_posterior(many, X[:1], *SPREAD),
        t.compete(one, X, *SPREAD, numbers(9, D), np.empty(0)),
        t.compete(many, X[:1], *SPREAD, numbers(9, 5), rng().random(9)),
    )  # fmt: skip


@recipe("thompson.play")
def thompson_play(module: Any) -> object:
    return [
        block(
            module,
            lambda models, X, r, g, n=n, more=more: module.thompson.play(
                models, *NONE, X, r, 1.7, 1.0, 3, 0.3, 0.2, 0.1, more, 1.1, 0.9, n, g
            ),
        )
        for n in (1, 6)
        for more in (0.0, 0.3)
    ]


@recipe("regression.inverse_gap", "regression.estimates", "regression.cut", "regression.confident")
@recipe("regression.gap_scale", "regression.confidence", "regression.squares", "regression.untried")
def regression(module: Any) -> object:
    r, X = module.regression, numbers(K, D)
    means, widths = r.estimates(ridge_models(module), X)
    low, high = r.cut(means, widths, 0.3, 0.4, 1.1, r.squares(X), 1.7, -0.1, 0.9)
    return (
        means, widths, r.estimates(ridge_models(module, 5), X[:1]), low, high, r.inverse_gap(means, 7.0),
        r.confident(low, high, True), r.confident(low, high, False), r.gap_scale(9, 3.0, 0.4), r.confidence(9, 3, 0.4),
        r.untried(ridge_models(module, 3, counted=True), D),
    )  # fmt: skip


@recipe("regression.squarecb_play", "regression.regcb_play")
def regression_play(module: Any) -> object:
    r = module.regression
    return [
        block(module, lambda models, X, y, g: r.squarecb_play(models, 0.3, 1.1, 9.0, 0.4, 3, X, y, g)),
        block(module, lambda models, X, y, g: r.regcb_play(models, 1.7, 0.2, 0.3, 1.1, -0.1, 0.9, True, 3, X, y, g)),
        block(module, lambda models, X, y, g: r.regcb_play(models, 1.7, 0.2, 0.0, 1.0, 0.0, 1.0, False, 3, X, y, g)),
    ]


@recipe("ridge.choose_many", "ridge.learn_many", "thompson.choose_many")
def ridge_many(module: Any) -> object:
    arms = np.random.default_rng(3).integers(0, 3, 4000)  # as many as any block has rounds
    return [
        block(module, lambda models, X, y, g: module.ridge.choose_many(models, X, 1.7, 0.4, 0.2, 0.1, 0.0, 1.0, g)),
        block(module, lambda models, X, y, g: module.thompson.choose_many(models, X, *SPREAD, g)),
        block(
            module,
            lambda models, X, y, g: module.ridge.learn_many(models, *NONE, X, arms[: len(y)], y[:, 0], 1.7, 1.0),
        ),
    ]


@recipe("regression.squarecb_choose_many", "regression.regcb_choose_many")
def regression_many(module: Any) -> object:
    r = module.regression
    return [
        block(module, lambda models, X, y, g: r.squarecb_choose_many(models, 0.3, 1.1, 9.0, X, g)),
        block(
            module, lambda models, X, y, g: r.regcb_choose_many(models, 1.7, 0.2, 0.3, 1.1, -0.1, 0.9, True, 3, X, g)
        ),
    ]


@recipe("kary.exp3_learn", "kary.ucb1_scores", "kary.greedy_mixed", "kary.decayed")
@recipe("kary.beta_winner")
def kary(module: Any) -> object:
    k, totals, counts = module.kary, np.abs(numbers(K)), np.arange(float(K))
    weights = numbers(K)
    k.exp3_learn(weights, 0.2, 3, 0.4, 0.9)
    return (
        weights, k.ucb1_scores(totals, counts, 0.7), k.greedy_mixed(totals, counts, 0.1), k.decayed(0.4, 0.3, 17),
        k.beta_winner(totals + 1, counts + 1, rng()),
    )  # fmt: skip


@recipe("kary.exp3_play", "kary.ucb1_play", "kary.greedy_play", "kary.beta_play")
def kary_play(module: Any) -> object:
    k, rewards = module.kary, (numbers(T, K) > 0.5).astype(float)
    state = [np.zeros(K) for _ in range(5)] + [np.ones(K) for _ in range(4)]
    return (
        k.exp3_play(state[0], 0.2, rewards, rng()), k.ucb1_play(state[1], state[2], 0.7, rewards, rng()),
        k.greedy_play(state[3], state[4], 0.3, 0.2, 4, rewards, rng()),
        k.beta_play(state[5], state[6], True, rewards, rng()), k.beta_play(state[7], state[8], False, rewards, rng()),
        state,
    )  # fmt: skip


@recipe("weights.importance_weighted", "weights.normalised", "weights.mixed", "weights.floored")
def weights(module: Any) -> object:
    w, logs = module.weights, 9 * numbers(K)
    return w.importance_weighted(0.3, 0.7), w.normalised(logs), w.mixed(logs, 0.1), w.floored(w.normalised(logs), 0.1)


@recipe("ridge.revise")
def ridge_revises(module: Any) -> object:
    models = ridge_models(module, 3)
    module.ridge.revise(models, 1, numbers(K, D), 4, 0.7)
    return models


@recipe("tokens.tokens", "tokens.arm_hash", "tokens.found_by_arm")
@recipe("decisions.numeric", "decisions.take_numbers", "decisions.decide_optimistic")
@recipe("decisions.predicted", "decisions.register_decisions")
def decisions(module: Any) -> object:
    d, limits = module.decisions, (99, 99, 99, 9)
    context = {"hour": 9, "price": 0.3, "vip": None, "city": "Oslo", "tags": ["new", 1e-7, {"far": True}]}
    [words], n_keys, kinds = module.tokens.tokens([context], b"c", None, limits)
    arms = [{"id": f"arm{k}", "price": float(k), "hour": k} for k in range(K)]
    each, *_, flat = module.tokens.tokens(arms, b"a", "id", limits)
    tail = b"".join(b"%08d" % k + one for k, one in enumerate(each))
    names = np.unique(np.frombuffer(d.numeric(words, tail, K), np.uint64)[::3])
    counts, means, squares = np.arange(3.0, 3.0 + len(names)), np.linspace(0, 1, len(names)), np.arange(len(names)) / 2
    models, out = ridge_models(module), []
    for u in (0.01, 0.5, 0.99):
        request = (words, tail, K, names, counts, means, squares)
        settings = (True, 7, models, D, 1.3, 0.4, 0.0, 1.0, 0.3, 1.1, 0.2, u)
        out.append(d.decide_optimistic(*request, *settings))
        out.append(d.predicted(models, out[-1][2]))
        out.append(d.take_numbers(*request))
        made = (words, tail, K, out[-3][2], 0.4, 1, b"")
        out.append(d.register_decisions([made, made], 0, names, counts, means, squares, models, D))
    return (
        words, n_keys, kinds is None, tail, flat, d.numeric(words, tail, K), out,
        counts, means, squares, models, module.tokens.found_by_arm({int(names[0]): 3}, tail, K),
        module.tokens.arm_hash(tail, K - 1),
    )  # fmt: skip


@recipe("decisions.learn_beside", "decisions.revise_beside", "decisions.surplus")
def beside(module: Any) -> object:
    d, models = module.decisions, ridge_models(module)
    crossed, sums, rewards = np.zeros((D, models.shape[2])), np.zeros((3, D)), np.zeros(3)
    rows, values, limits = numbers(60, D, seed=2), numbers(60, seed=4).tolist(), (99, 99, 99, 9)
    contexts = [{"hour": k / 7, "city": f"city {k % 5}"} for k in range(60)]
    words, _, _ = module.tokens.tokens(contexts, b"c", None, limits)
    [arm], _, _ = module.tokens.tokens([{"price": 3.0}], b"a", None, limits)
    name = np.frombuffer(words[0], np.uint64)[1:2].tobytes()
    scaling = name + np.array([4.0, 2.5]).tobytes()
    made = [(one, bytes(8) + arm, 1, row[None], r, 0, scaling) for one, row, r in zip(words, rows, values)]
    assert d.learn_beside(made, 0, models, crossed, sums, rewards, 59.0, 7) == 59
    d.revise_beside(made[3], 0.5, models, crossed, sums, rewards, 7)
    return models, crossed, sums, rewards, d.surplus(models, crossed, sums, 0.3)


@recipe("choice.explored")
def explored(module: Any) -> object:
    return module.choice.explored(T, K, 0.3, rng())


@recipe("regression.greedy_play")
def greedy_play(module: Any) -> object:
    return block(
        module, lambda models, X, r, g: module.regression.greedy_play(models, *NONE, 1.7, 1.0, 0.3, 0.2, 4, X, r, g)
    )


@recipe(
    "kary.arm_probability", "kary.exp3_policies", "kary.ucb1_policies", "kary.greedy_policies", "kary.beta_policies"
)
def policies_play(module: Any) -> object:
    k, rewards, N = module.kary, (numbers(T, K) > 0.5).astype(float), 7
    tables = np.random.default_rng(3).dirichlet(np.ones(K), size=(T, N))
    tables[:, :3] = np.eye(K)[np.random.default_rng(4).integers(K, size=(T, 3))]  # some policies name one arm
    state = [np.zeros(N) for _ in range(5)] + [np.ones(N) for _ in range(4)]
    rest = lambda: (rng(), tables, rewards, np.random.default_rng(6))  # noqa: E731
    return (
        k.exp3_policies(state[0], 0.2, *rest()), k.ucb1_policies(state[1], state[2], 0.7, *rest()),
        k.greedy_policies(state[3], state[4], 0.3, 0.2, 4, *rest()), k.beta_policies(state[5], state[6], True, *rest()),
        k.beta_policies(state[7], state[8], False, *rest()),
        k.arm_probability(np.full(N, 1 / N), tables[0], 3), state,
    )  # fmt: skip


def gram(seed: int, rows: int) -> np.ndarray:
    X = numbers(rows, D, seed=seed)
    return np.asarray(X.T @ np.diag(np.arange(1.0, rows + 1)) @ X / rows)


@recipe("truncated.decompose", "truncated.estimate", "truncated.learn", "truncated.play", "truncated.play_stages")
def truncated(module: Any) -> object:
    t, X, R = module.truncated, numbers(T, K, D, seed=2), numbers(T, K, seed=9)
    A, b, results = gram(1, 13), numbers(D), []  # of rank 13: eight eigenvalues are nothing
    prior = numbers(D, seed=6)
    t.learn(A, b, prior, numbers(D, seed=5), 0.7)
    for mean in (prior, np.empty(0)):
        results += [t.decompose(A, b), t.estimate(*t.decompose(A, b), mean, X[0], 1.4)]
        results.append(t.play(A, b, mean, 1.4, 0.1, X, R, rng()))
    stages = [gram(s, 9) for s in range(4)], [numbers(D, seed=s) for s in range(4)]
    return results, A, b, t.play_stages(*stages, prior, 1.4, 0.05, 50.0, X, R, rng()), *stages


@recipe("staged.play", "staged.pooled")
def staged(module: Any) -> object:
    stages = [ridge_models(module) for _ in range(4)]
    pooled = [module.staged.pooled(numbers(K), by * np.abs(numbers(K, seed=4)), 50.0, 4) for by in (0.01, 0.1, 1.0)]
    return pooled, module.staged.play(stages, 0.3, 50.0, numbers(T, K, D), numbers(T, K, seed=9), rng()), stages


@recipe("cofine.estimate", "cofine.learn", "cofine.play")
def cofine(module: Any) -> object:
    c, U = module.cofine, (numbers(D, 5), numbers(D, seed=6))
    models = ridge_models(module), ridge_models(module, d=5)
    c.learn(*models, *U, numbers(D, seed=3), 0.4)
    estimates = c.estimate(*models, *U, 1.3, numbers(K, D))
    played = c.play(*models, *U, 1.3, 0.2, 1.0, 0.7, numbers(T, K, D), numbers(T, K, seed=9), rng())
    return estimates, played, models

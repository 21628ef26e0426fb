"""Evaluation with very many arms: importance weights of embeddings instead of arms (MIPS, OffCEM).

With thousands of arms pi(a | x) / p(a | x) has hopeless variance. MIPS (Saito & Joachims 2022) weighs by the arm's
embedding e, w(x, e) = p(e | x, pi) / p(e | x, log): unbiased where the reward depends on the arm through e alone.
OffCEM (Saito, Ren & Joachims 2023) weighs by a cluster c(a) and lets a model f explain the arms within it: the mean of
w(x, c(a)) (r - f(x, a)) + sum_a pi(a | x) f(x, a), unbiased where f is right about differences within a cluster.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from armwise.core.agent import Floats, count, fraction
from armwise.core.seeds import stream
from armwise.core.tools.extras import needs
from armwise.offline.designs.slot_interactions import p_value
from armwise.offline.designs.within_groups import FALSE_ALARM, IN_DOUBT, WithinGroups
from armwise.offline.estimators.reward_models import folds_of
from armwise.offline.evaluation.per_round_scores import Scored, evaluation, known_estimators, ratio
from armwise.offline.evaluation.targets import Target, of_logged
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import Ints, LogBlock, WeakLogWarning, ndim
from armwise.offline.results.estimates import Evaluation

ESTIMATORS = ("mips", "sn-mips", "offcem")
_BLOCK = 4_000_000  # numbers in a block of probabilities: tens of megabytes, whatever K is
_ASSUMED = {
    "mips": "the reward depends on the arm through its embedding alone",
    "sn-mips": "the reward depends on the arm through its embedding alone",
    "offcem": "the model is right about differences within the clusters",
}
_APART = "arms of one group do not earn the same, as weights by groups assume: give finer embeddings, or take offcem"
_APART_FROM_MODEL = ("arms of one cluster differ in what the model does not explain, so offcem is biased: give finer "
                     "embeddings, or more clusters")  # fmt: skip
_SHRINK = 5.0  # rows of a zero residual that every arm's own mean is shrunk with


def evaluate_embedded(
    log: Log,
    policy: Any,
    embeddings: Any,
    estimators: str | Iterable[str] = ESTIMATORS,
    *,
    logging: Any = None,
    clusters: int | None = None,
    level: float = 0.95,
    folds: int = 3,
    seed: int = 0,
    warn: bool = True,
) -> Evaluation:
    """Evaluate a policy on a log with too many arms for weights per arm.

    ``embeddings`` describes the arms: (K,) or (K, m) categories (whole numbers or strings; arms with the same ones
    share their weight), or (K, m) real numbers, from which k-means makes ``clusters``. ``logging`` is the policy that
    made the log, in any form that ``policy`` may have; without it the probabilities of the categories are estimated
    from the contexts by logistic regression. The log's own ``probabilities`` are not needed. Whether arms of one
    category earn the same, as MIPS assumes, is tested on at most 50,000 rows: the verdict says where they do not, and
    where it is in doubt the interval reaches over that of weights by arm.

    >>> rng = np.random.default_rng(3)
    >>> arms = rng.integers(0, 1000, 5000)
    >>> log = Log(arms=arms, rewards=(rng.random(5000) < 0.2 + 0.6 * (arms % 2)).astype(float), n_arms=1000)
    >>> target = np.where(np.arange(1000) % 2, 1 / 500, 0.0)  # odd arms only
    >>> found = evaluate_embedded(log, target, embeddings=np.arange(1000) % 2, logging=np.full(1000, 1 / 1000))
    >>> bool(found["mips"].low < 0.8 < found["mips"].high), found["mips"].ess > 2000
    (True, True)
    """
    if not isinstance(log, Log):
        raise ValueError(f"log must be an armwise.offline.Log, got {type(log).__name__}")
    names = known_estimators(estimators, ESTIMATORS)
    if len(log) < 2:
        raise ValueError(f"the log has {len(log)} rows: there is nothing to evaluate on")
    fraction("level", level)
    count("folds", folds, least=2)
    groups = groups_of(embeddings, log.n_arms, clusters, seed)
    target = Target(policy, log)
    model = _Model(groups, folds, seed).fit(log) if "offcem" in names else None
    logger = _Logger(log, groups, logging)
    weights, q_logged, q_target, rewards, arms = [], [], [], [], []
    within, ratios = WithinGroups(groups.of, len(log)), list[Floats]()
    for rows in log.batches(max(1, _BLOCK // log.n_arms)):
        answers = target.answers(rows)
        weights.append(_of_groups(answers, groups, groups.of[rows.arms]) / logger.probabilities(rows))
        ratios.append(of_logged(answers, rows.arms) / logger.of_arms(rows))
        rewards.append(rows.rewards)
        arms.append(rows.arms)
        within.add(rows)
        if model is not None:
            q_logged.append(model.logged(rows))
            q_target.append(model.expected(rows, answers))
    w, r, played = np.concatenate(weights), np.concatenate(rewards), np.concatenate(arms)
    found: dict[str, Scored] = {}
    apart = np.concatenate(ratios) - w  # from weights arm by arm: 0 on average times what a group does not explain
    alike = within.p_value(apart, seed)
    for name in names:
        if name == "offcem":
            f, under = np.concatenate(q_logged), np.concatenate(q_target)
            p, rest, said = p_value(apart * (r - f)), r - f, _APART_FROM_MODEL
            scores = unbiased = under + w * rest
            learnt = _own_share(played, folds) * apart * rest  # what the arms' own means add to the error
            centre = scores + learnt - learnt.mean()
        else:
            p, rest, said = alike, r - _means(r, played, groups), _APART
            scores, unbiased = ratio(w * r, w) if name == "sn-mips" else w * r, w * r
            centre = scores
        # with weights arm by arm, nothing is assumed of the groups; where arms differ, a model may have missed how
        without = ("weights by arm", unbiased + apart * rest) if min(p, alike) < IN_DOUBT else None
        found[name] = Scored(scores, w, (said,) * (p < FALSE_ALARM), centre=centre, without=without)
    about = [f"{name} assumes that {_ASSUMED[name]}, which is tested" for name in names]
    result = evaluation(found, target.name, level, rewards=r, about=about)
    if result.weaknesses and warn:
        warnings.warn(WeakLogWarning(result.verdict), stacklevel=2)
    return result


def _means(rewards: Floats, arms: Ints, groups: Groups) -> Floats:
    """The mean reward of each row's group."""
    of = groups.of[arms]
    return np.asarray((np.bincount(of, rewards) / np.maximum(np.bincount(of), 1))[of])


def _own_share(arms: Ints, folds: int) -> Floats:
    """By how much the model follows the mean residual of each row's arm in the other folds."""
    others = np.bincount(arms) * (folds - 1.0) / folds
    return np.asarray((others / (others + _SHRINK))[arms])


class Groups:
    """Groups of arms that share a weight: ``of`` (K,) is each arm's group, ``features`` (K, m) are for the model."""

    def __init__(self, of: Ints, features: Any) -> None:
        self.of, self.features = of, features
        self.n = int(of.max(initial=-1)) + 1
        K = len(of)
        self.indicator = sparse.csr_matrix((np.ones(K), (np.arange(K), of)), (K, self.n))


def groups_of(embeddings: Any, n_arms: int, clusters: int | None = None, seed: int = 0) -> Groups:
    """The groups of arms that these embeddings make."""
    array = np.asarray(embeddings)
    if array.ndim not in (1, 2) or len(array) != n_arms:
        raise ValueError(f"embeddings has shape {array.shape}, expected ({n_arms},) or ({n_arms}, m): one per arm")
    array = array[:, None] if array.ndim == 1 else array
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError("embeddings must be finite numbers")
        return Groups(_clustered(array, clusters, seed), sparse.csr_matrix(array))
    if clusters is not None:
        raise ValueError("clusters= is for embeddings of real numbers: categories are their own groups")
    columns = [np.unique(array[:, j], return_inverse=True)[1].ravel() for j in range(array.shape[1])]
    of = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()
    hot = [sparse.csr_matrix((np.ones(n_arms), (np.arange(n_arms), c)), (n_arms, c.max() + 1)) for c in columns]
    return Groups(of.astype(np.int64), sparse.hstack(hot, format="csr"))


def _clustered(points: Floats, clusters: int | None, seed: int) -> Ints:
    distinct = len(np.unique(points, axis=0))
    k = min(distinct, count("clusters", clusters) if clusters is not None else max(2, min(50, int(distinct**0.5))))
    with needs("offline"):
        from sklearn.cluster import KMeans

    start = int(stream(seed, "clusters of arms").integers(0, 2**31 - 1))
    return np.asarray(KMeans(k, n_init=3, random_state=start).fit_predict(points), np.int64)


def _of_groups(answers: np.ndarray, groups: Groups, wanted: Ints) -> Floats:
    """The probability of each row's group under these answers: (n,) arms, or an (n, K) table."""
    if answers.ndim == 1:
        return np.asarray(groups.of[answers] == wanted, np.float64)
    return np.asarray((answers @ groups.indicator)[np.arange(len(answers)), wanted], np.float64)


class _Logger:
    """The logging policy's probability of each row's group: known, or estimated from the contexts.

    The estimate is fitted on all rows, not cross-fitted: then the weights of a group add up as they should
    (Hirano, Imbens & Ridder 2003), while 1 / p of a model from other rows is too large on average.
    """

    def __init__(self, log: Log, groups: Groups, logging: Any) -> None:
        self._groups = groups
        self._target = Target(logging, log) if logging is not None else None
        self._model: Any = None
        if self._target is not None:
            return
        rows = log.rows
        labels = groups.of[rows.arms]
        self._share = np.bincount(labels, minlength=groups.n) / max(len(labels), 1)
        played = np.bincount(rows.arms, minlength=log.n_arms)
        self._share_of_group = played / np.maximum(np.bincount(groups.of, played, groups.n), 1)[groups.of]
        if ndim(rows.contexts) == 2 and np.count_nonzero(self._share) > 1:
            with needs("offline"):
                from sklearn.linear_model import LogisticRegression
                from sklearn.pipeline import make_pipeline
                from sklearn.preprocessing import StandardScaler
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
            self._model = model.fit(rows.contexts, labels)

    def of_arms(self, rows: LogBlock) -> Floats:
        """The logging policy's probability of each row's arm; by its share of its group's rows where it is unknown."""
        if self._target is not None:
            return of_logged(self._target.answers(rows), rows.arms)
        return np.asarray(self.probabilities(rows) * self._share_of_group[rows.arms])

    def probabilities(self, rows: LogBlock) -> Floats:
        wanted = self._groups.of[rows.arms]
        if self._target is not None:
            p = _of_groups(self._target.answers(rows), self._groups, wanted)
            if len(p) and p.min() <= 0:
                row = int(np.argmin(p))
                raise ValueError(
                    f"logging, row {rows.start + row}: it never plays arms like {rows.arms[row]}, which the log has"
                )
            return p
        if self._model is None:
            return np.asarray(self._share[wanted])
        table = self._model.predict_proba(rows.contexts)
        return np.asarray(table[np.arange(len(rows)), np.searchsorted(self._model.classes_, wanted)])


class _Model:
    """f(x, a) = a ridge on the context and the arm's embedding, and each arm's own mean residual, shrunk; cross-fitted.

    Being a sum of a part of x and a part of a, it needs no (n, K) table.
    """

    def __init__(self, groups: Groups, folds: int, seed: int) -> None:
        self._groups, self._folds, self._seed = groups, folds, seed
        self._theta: list[Floats] = []
        self._own: list[Floats] = []  # (K,) each: the arm's part

    def fit(self, log: Log) -> _Model:
        rows = log.rows
        fold, X = folds_of(rows, self._folds, self._seed), _contexts(rows)
        features = self._groups.features
        for f in range(self._folds):
            used = np.flatnonzero(fold != f)
            Z = sparse.hstack([sparse.csr_matrix(X[used]), features[rows.arms[used]]], format="csr")
            y = rows.rewards[used]
            mean = float(y.mean())
            theta = _ridge(Z, y - mean)
            theta[0] += mean
            residual = y - Z @ theta
            played = np.bincount(rows.arms[used], minlength=rows.n_arms)
            rest = np.bincount(rows.arms[used], residual, rows.n_arms) / (played + _SHRINK)
            self._theta.append(theta[: X.shape[1]])
            self._own.append(np.asarray(features @ theta[X.shape[1] :]).ravel() + rest)
        return self

    def logged(self, rows: LogBlock) -> Floats:
        return self._sum(rows, lambda f, mine: self._own[f][rows.arms[mine]])

    def expected(self, rows: LogBlock, answers: np.ndarray) -> Floats:
        if answers.ndim == 1:
            return self._sum(rows, lambda f, mine: self._own[f][answers[mine]])
        return self._sum(rows, lambda f, mine: answers[mine] @ self._own[f])

    def _sum(self, rows: LogBlock, arms_part: Any) -> Floats:
        fold, X, q = folds_of(rows, self._folds, self._seed), _contexts(rows), np.empty(len(rows))
        for f in range(self._folds):
            mine = np.flatnonzero(fold == f)
            q[mine] = X[mine] @ self._theta[f] + arms_part(f, mine)
        return q


def _ridge(Z: Any, y: Floats) -> Floats:
    """The ridge with lam = 1; iterative where a matrix of features by features would be large."""
    if Z.shape[1] > 2000:
        return np.asarray(lsqr(Z, y, damp=1.0)[0])
    return np.asarray(np.linalg.solve((Z.T @ Z).toarray() + np.eye(Z.shape[1]), Z.T @ y))


def _contexts(rows: LogBlock) -> Floats:
    one = np.ones((len(rows), 1))
    return np.hstack([one, rows.contexts]) if ndim(rows.contexts) == 2 else one

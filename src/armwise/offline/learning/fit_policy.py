"""Learning from logs: the best policy of a class by IPS or DR, with an honest estimate on rows it never saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from armwise.core.agent import Floats, fraction
from armwise.core.seeds import row_uniforms
from armwise.core.tools.extras import needs
from armwise.offline.estimators.reward_models import cluster_uniforms, fitted_model
from armwise.offline.evaluation.evaluation import evaluate
from armwise.offline.evaluation.targets import Target
from armwise.offline.logs.labels import ArmNames
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import ndim
from armwise.offline.results.estimates import Evaluation
from armwise.policies import Policy

_CHOICE_FOLDS = 3  # parts of the training rows that choose the method and the learner
_RADIAL = 500  # features, chosen on the digits and letters of UCI, where 150 to 500 were ever better
_FEW_EXAMPLES, _MANY_EXAMPLES = 100, 20_000  # between which radial features are tried


@dataclass(frozen=True)
class Fitted:
    """A learnt policy and its held-out estimate (``value``, ``low``, ``high``; all of it in ``estimate``).

    >>> import armwise as aw
    >>> log = Log(contexts=np.zeros((4000, 1)), arms=[0, 1] * 2000, rewards=[1, 0] * 2000, probabilities=[0.5] * 4000)
    >>> fit(log, aw.FinitePolicies([aw.Constant(0), aw.Constant(1)]), "ips").policy
    Constant(arm=0)
    """

    policy: Any
    estimate: Evaluation
    method: str
    n_train: int
    n_test: int
    learnt_by: str = "dr"  # whose estimated rewards it was learnt from
    learner: str = ""  # the name of the default learner that won

    @property
    def about(self) -> str:
        """Describe the policy and its training rows, in one line."""
        name = self.learner or type(self.policy).__name__
        return (
            f"{name}, learnt by {self.learnt_by} from {self.n_train:,} rows and judged on {self.n_test:,} it had "
            "not seen; then learnt again from all rows"
        )

    def plot(self, path: Any = None) -> Any:
        """The held-out estimates with their intervals, as a matplotlib figure (written to ``path`` if there is one)."""
        return self.estimate.plot(path)

    def report(self, path: Any) -> None:
        """Return a self-contained HTML page: the learnt policy and its estimate."""
        from armwise.offline.results import html_pages

        html_pages.fitted_report(self, path)

    def _repr_html_(self) -> str:
        from armwise.offline.results import html_pages

        return html_pages.fitted_fragment(self)

    @property
    def value(self) -> float:
        """The estimated reward per decision."""
        return self.estimate[self.method].value

    @property
    def low(self) -> float:
        """The lower end of its interval."""
        return self.estimate[self.method].low

    @property
    def high(self) -> float:
        """The upper end of its interval."""
        return self.estimate[self.method].high


class Chosen:
    """A policy that only its oracle can ask (an index into a table of arms)."""

    def __init__(self, oracle: Any, policy: Any) -> None:
        self.oracle, self.policy = oracle, policy

    def __call__(self, context: Any) -> int:
        return int(self.many(np.asarray(context)[None])[0])

    def many(self, contexts: Any) -> Any:
        """The arms in n contexts."""
        return self.oracle.act(self.policy, contexts)


class ById(Policy):
    """A policy that counts arms from 0, answering the ids of a log's arms.

    >>> import armwise as aw
    >>> ById(aw.Constant(1), [5, 7]).many([[0.0]])
    array([7])
    """

    _namespace = "offline."

    def __init__(self, policy: Any, ids: Sequence[int]) -> None:
        self.policy, self.ids = policy, list(ids)

    def many(self, contexts: Any) -> Any:
        """The ids of the arms in n contexts, or distributions over the arms."""
        answer = np.asarray(self.policy.many(contexts))
        return np.array(self.ids)[answer] if answer.ndim == 1 else answer


class ArmFeatures:
    """The policy that plays the arm with the largest linear score of its own features: contexts of shape (n, K, d)."""

    def __init__(self, weights: Floats) -> None:
        self.weights = weights

    def __call__(self, context: Any) -> int:
        return int(self.many(np.asarray(context)[None])[0])

    def many(self, contexts: Any) -> Any:
        """The arms in n contexts."""
        return (np.asarray(contexts, np.float64) @ self.weights).argmax(axis=1)


class _ArmFeatureOracle:
    """Ridge regression of estimated rewards on the features of every arm in every row."""

    def argmax(self, contexts: Floats, rewards: Floats) -> ArmFeatures:
        X = contexts.reshape(-1, contexts.shape[-1])
        X, y = X - contexts.mean(axis=1, keepdims=True).repeat(contexts.shape[1], 1).reshape(X.shape), rewards
        centred = (y - y.mean(axis=1, keepdims=True)).ravel()  # only differences within a row choose an arm
        return ArmFeatures(np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ centred))


def fit(
    log: Log,
    oracle: Any = None,
    method: Literal["auto", "ips", "dr"] = "auto",
    reward_model: Any = None,
    clip: float | None = None,
    *,
    held_out: float = 0.3,
    folds: int = 3,
    seed: int = 0,
    cluster: Any = None,
    **evaluation: Any,
) -> Fitted:
    """Learn the best policy of the oracle's class on this log, and evaluate it on the ``held_out`` share of its rows.

    Every row becomes an estimated reward for each arm (``method`` "ips" or "dr"; "auto" takes the one whose policy does
    better in cross-validation on the training rows), and ``oracle.argmax`` finds the policy with the largest total.
    Without an ``oracle`` it is weighted logistic regression on scaled contexts, or, where that is better by more than a
    standard error in the same cross-validation, on radial features of them; where contexts are (n, K, d) it is a linear
    score of the arms' own features. Choosing the best overfits its own estimate, so only the other rows judge it; then
    it is learnt again from all rows, which is the ``policy`` of the result; in a log of ids it answers ids (``ById``),
    otherwise the places of arms, as oracles do. ``evaluation`` goes to ``evaluate``.
    ``clip`` steadies the learning alone: clipped weights would take from the arms that are rare in the log.
    ``cluster`` (a column's name, or an array with one value per row) keeps the rows of a user on one side of every
    split, and in one fold.

    >>> import armwise as aw
    >>> rng = np.random.default_rng(0)
    >>> x, arms = rng.normal(size=(3000, 1)), rng.integers(0, 2, 3000)
    >>> rewards = (rng.random(3000) < np.where(arms == (x[:, 0] > 0), 0.9, 0.1)).astype(float)
    >>> log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=np.full(3000, 0.5), n_arms=2)
    >>> fitted = fit(log, aw.LinearOracle(dim=1))
    >>> fitted.policy.many([[-1.0], [1.0]]), bool(fitted.value > 0.8)
    (array([0, 1]), True)
    """
    if method not in ("auto", "ips", "dr"):
        raise ValueError(f"method is {method!r}, expected 'auto', 'ips' or 'dr'")
    if oracle is not None and not hasattr(oracle, "argmax"):
        raise ValueError(
            f"oracle must be an argmax oracle (FinitePolicies, LinearOracle, ...), got {type(oracle).__name__}"
        )
    if not log.has_probabilities:
        raise ValueError("the log has no probabilities: estimate them with armwise.offline.PropensityModel first")
    per_arm = ndim(log.contexts) == 3
    if (ndim(log.contexts) != 2 and not per_arm) or log.available is not None:
        raise ValueError("learning from a log needs contexts of shape (n, d) or (n, K, d), the same arms in every row")
    together = log.column(cluster) if isinstance(cluster, str) else None if cluster is None else np.asarray(cluster)
    if together is not None and together.shape != (len(log),):
        raise ValueError(f"cluster has shape {together.shape}, expected {(len(log),)}: one value per row")

    def uniforms(what: str) -> Floats:
        return row_uniforms(0, len(log), seed, what) if together is None else cluster_uniforms(together, seed, what)

    test = uniforms("split") < fraction("held_out", held_out)
    if test.all() or not test.any():
        raise ValueError(
            f"held_out is {held_out}: of {len(log)} rows, {int(test.sum())} are held out; both parts need some"
        )
    ids = ArmNames(log.arm_names, log.n_arms).ids  # oracles count arms from 0; in a log of ids a number is an id
    learners = [_Learner("", oracle)] if oracle is not None else _ARM_FEATURES if per_arm else _SHARED

    def lessons(rows: np.ndarray) -> _Lessons:
        return _Lessons(log.take(rows), _part(reward_model, rows), clip, folds, seed, ids, part_of(rows))

    def part_of(rows: np.ndarray) -> Any:
        return None if together is None else together[rows]

    train = ~test
    taught = lessons(train)
    methods = ("ips", "dr") if method == "auto" else (str(method),)
    hows = [(by, learner) for learner in learners for by in methods if by in learner.methods]
    how = hows[0]
    if len(hows) > 1:
        scores = taught.rewards("dr")  # of every arm in every row: what any policy would have earned, up to noise
        how = _best(hows, scores, _cross_validated(log, train, hows, lessons, uniforms("choice of a method")))
    judge = "dr" if method == "auto" else str(method)
    estimators = evaluation.pop("estimators", [judge, "snips"])
    held, model = log.take(test), _part(reward_model, test)
    evaluation |= {"folds": folds, "seed": seed, "cluster": part_of(test)}
    judged: Evaluation = evaluate(held, taught.learnt(how), estimators, model, **evaluation)
    judged.target = how[1].name or judged.target
    policy = lessons(np.ones(len(log), bool)).learnt(how)
    return Fitted(policy, judged, judge, int(train.sum()), int(test.sum()), how[0], how[1].name)


class _Learner:
    """A learner of a policy from a table of rewards: an oracle, or a factory of one for a number of examples."""

    def __init__(self, name: str, oracle: Any = None, make: Callable[[int], Any] | None = None) -> None:
        self.name, self._oracle, self._make = name, oracle, make
        self.methods = ("ips",) if make is _radial_classifier else ("ips", "dr")

    def learnt(self, contexts: Floats, rewards: Floats) -> Any:
        oracle = self._oracle
        if self._make is not None:
            oracle = self._make(int(np.count_nonzero(rewards > rewards.min(axis=1, keepdims=True))))
        return _policy(oracle, oracle.argmax(contexts, rewards))


_How = tuple[str, _Learner]  # the method of the estimated rewards, and the learner


class _Lessons:
    """Training rows; their estimated rewards are computed once for all learners."""

    def __init__(
        self, log: Log, reward_model: Any, clip: float | None, folds: int, seed: int, ids: Sequence[int] | None,
        cluster: Any,
    ) -> None:  # fmt: skip
        self._log, self._settings, self._ids = log, (reward_model, clip, folds, seed, cluster), ids
        self._tables: dict[str, Floats] = {}

    def rewards(self, by: str) -> Floats:
        """(n, K) rewards as IPS or DR estimates them."""
        if by not in self._tables:
            self._tables[by] = _reward_table(self._log, by, *self._settings)
        return self._tables[by]

    def learnt(self, how: _How) -> Any:
        """The policy; a learner may write into what it is given."""
        policy = how[1].learnt(self._log.contexts.copy(), self.rewards(how[0]).copy())
        return policy if self._ids is None else ById(policy, self._ids)


def _cross_validated(
    log: Log, train: np.ndarray, hows: list[_How], lessons: Callable[[np.ndarray], _Lessons], uniforms: Floats
) -> np.ndarray:
    """(learners, training rows) arms, each played by a policy that was learnt from other training rows."""
    fold = (uniforms * _CHOICE_FOLDS).astype(np.int64)
    arms = np.zeros((len(hows), len(log)), np.int64)
    for part in range(_CHOICE_FOLDS):
        inner, rest = train & (fold == part), train & (fold != part)
        if inner.any() and rest.any():
            inner = np.flatnonzero(inner)
            taught, asked = lessons(rest), log.rows.take(inner)
            for i, how in enumerate(hows):
                answers = Target(taught.learnt(how), log).answers(asked)
                arms[i, inner] = answers if answers.ndim == 1 else answers.argmax(axis=1)
    return arms[:, train]


def _best(hows: list[_How], scores: Floats, arms: np.ndarray) -> _How:
    """Return the first learner's policy; a later one only if it is better by more than a standard error."""
    earned = scores[np.arange(len(scores)), arms]  # (learners, rows)
    means = earned.mean(axis=1)
    first = [i for i, how in enumerate(hows) if how[1] is hows[0][1]]
    best = max(first, key=lambda i: means[i])
    for i in range(len(first), len(hows)):
        gap = earned[i] - earned[best]
        if gap.mean() > gap.std() / np.sqrt(len(gap)):
            best = i
    return hows[best]


def _linear(examples: int) -> Any:
    return _classifier([])


def _radial_classifier(examples: int) -> Any:
    """Radial features around some of the examples (Nystroem); of many examples they would take too long."""
    if not _FEW_EXAMPLES <= examples <= _MANY_EXAMPLES:
        return _classifier([])
    with needs("sklearn"):
        from sklearn.kernel_approximation import Nystroem
        from sklearn.preprocessing import StandardScaler

    return _classifier([Nystroem(n_components=min(_RADIAL, examples), random_state=0), StandardScaler()])


def _classifier(features: list[Any]) -> Any:
    with needs("sklearn"):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        from armwise.agents.oracle.oracles.sklearn_oracles import ClassifierOracle

    return ClassifierOracle(make_pipeline(StandardScaler(), *features, LogisticRegression(max_iter=1000)))


_SHARED = [
    _Learner("logistic regression on the contexts", make=_linear),
    _Learner("logistic regression on radial features of the contexts", make=_radial_classifier),
]
_ARM_FEATURES = [_Learner("a linear score of the arms' features", _ArmFeatureOracle())]


def _part(reward_model: Any, rows: np.ndarray) -> Any:
    """These rows of an (n, K) array of expected rewards; a model is itself."""
    if reward_model is None or hasattr(reward_model, "predict"):
        return reward_model
    return np.asarray(reward_model)[rows]


def _reward_table(
    log: Log, method: str, reward_model: Any, clip: float | None, folds: int, seed: int, cluster: Any
) -> Floats:
    """(n, K) estimated rewards: q everywhere (0 for IPS), corrected by (r - q) / p at the arm that was played."""
    rows = log.rows
    table = np.zeros((len(rows), rows.n_arms))
    if method == "dr":
        table[:] = fitted_model(reward_model, log, folds, seed, cluster=cluster).predict(rows)
    assert rows.probabilities is not None
    p = rows.probabilities if clip is None else np.maximum(rows.probabilities, clip)
    flat, played = table.reshape(-1), np.arange(len(rows)) * rows.n_arms + rows.arms
    own = flat[played]
    flat[played] = own + (rows.rewards - own) / p
    return table


def _policy(oracle: Any, found: Any) -> Any:
    members = getattr(oracle, "policies", None)
    if isinstance(found, (int, np.integer)) and isinstance(members, (list, tuple)):
        return members[int(found)]
    return found if callable(found) else Chosen(oracle, found)

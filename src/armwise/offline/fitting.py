"""Learning from logs: the best policy of a class by IPS or DR, with an honest estimate on rows it never saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from armwise.agent import Floats, fraction
from armwise.offline.evaluation import evaluate
from armwise.offline.log import Log
from armwise.offline.result import Evaluation
from armwise.offline.reward_models import fitted_model
from armwise.offline.rows import ndim
from armwise.streams import row_uniforms


@dataclass(frozen=True)
class Fitted:
    """A policy and what it is worth on the rows held out (``value``, ``low``, ``high``; all of it in ``estimate``).

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

    @property
    def value(self) -> float:
        """The estimated reward a round."""
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
    """A policy that only its oracle can ask (an index into a table of arms).

    >>> import armwise as aw
    >>> Chosen(aw.FinitePolicies(np.array([[0, 1], [1, 1]])), 0).many([[1]])
    array([1])
    """

    def __init__(self, oracle: Any, policy: Any) -> None:
        self.oracle, self.policy = oracle, policy

    def __call__(self, context: Any) -> int:
        return int(self.many(np.asarray(context)[None])[0])

    def many(self, contexts: Any) -> Any:
        """The arms in n contexts."""
        return self.oracle.act(self.policy, contexts)


def fit(
    log: Log,
    oracle: Any,
    method: Literal["ips", "dr"] = "dr",
    reward_model: Any = None,
    clip: float | None = None,
    *,
    held_out: float = 0.3,
    folds: int = 3,
    seed: int = 0,
    **evaluation: Any,
) -> Fitted:
    """The best policy of the oracle's class on this log, judged on the ``held_out`` share of its rows.

    Every row becomes an estimated reward for each arm (``method`` "ips" or "dr"), and ``oracle.argmax`` finds the
    policy with the largest total. Choosing the best overfits its own estimate, so only the other rows judge it;
    ``evaluation`` goes to ``evaluate``. ``clip`` steadies the learning alone: clipped weights would take from the
    arms that are rare in the log, and an interval around that would miss the truth.

    >>> import armwise as aw
    >>> rng = np.random.default_rng(0)
    >>> x, arms = rng.normal(size=(3000, 1)), rng.integers(0, 2, 3000)
    >>> rewards = (arms == (x[:, 0] > 0)).astype(float)
    >>> log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=np.full(3000, 0.5), n_arms=2)
    >>> fitted = fit(log, aw.LinearOracle(dim=1))
    >>> fitted.policy.many([[-1.0], [1.0]]), bool(fitted.value > 0.9)
    (array([0, 1]), True)
    """
    if method not in ("ips", "dr"):
        raise ValueError(f"method is {method!r}, expected 'ips' or 'dr'")
    if not hasattr(oracle, "argmax"):
        raise ValueError(
            f"oracle must be an argmax oracle (FinitePolicies, LinearOracle, ...), got {type(oracle).__name__}"
        )
    if not log.has_probabilities:
        raise ValueError("the log has no probabilities: estimate them with armwise.offline.PropensityModel first")
    if ndim(log.contexts) != 2 or log.available is not None:
        raise ValueError("learning from a log needs contexts of shape (n, d) and the same arms in every row")
    test = row_uniforms(0, len(log), seed, "split") < fraction("held_out", held_out)
    if test.all() or not test.any():
        raise ValueError(
            f"held_out is {held_out}: of {len(log)} rows, {int(test.sum())} are held out; both parts need some"
        )
    train = log.take(~test)
    found = oracle.argmax(train.contexts, _reward_table(train, method, reward_model, clip, folds, seed))
    policy = _policy(oracle, found)
    estimators = evaluation.pop("estimators", [method, "snips"])
    judged = evaluate(log.take(test), policy, estimators, reward_model, folds=folds, seed=seed, **evaluation)
    return Fitted(policy, judged, method, int((~test).sum()), int(test.sum()))


def _reward_table(log: Log, method: str, reward_model: Any, clip: float | None, folds: int, seed: int) -> Floats:
    """(n, K) estimated rewards: q everywhere (0 for IPS), corrected by (r - q) / p at the arm that was played."""
    rows = log.rows
    table = np.zeros((len(rows), rows.n_arms))
    if method == "dr":
        table[:] = fitted_model(reward_model, log, folds, seed).predict(rows)
    assert rows.probabilities is not None
    p = rows.probabilities if clip is None else np.maximum(rows.probabilities, clip)
    played = (np.arange(len(rows)), rows.arms)
    table[played] += (rows.rewards - table[played]) / p
    return table


def _policy(oracle: Any, found: Any) -> Any:
    members = getattr(oracle, "policies", None)
    if isinstance(found, (int, np.integer)) and isinstance(members, (list, tuple)):
        return members[int(found)]
    return found if callable(found) else Chosen(oracle, found)

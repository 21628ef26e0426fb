"""Evaluation of ranking policies on a log of rankings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from armwise.agents.ranking.ranker import Ranker
from armwise.core.agent import Floats, count, fraction
from armwise.offline.designs.slot_interactions import IN_DOUBT, Interactions, shared_level
from armwise.offline.designs.slot_interactions import p_value as _p_value
from armwise.offline.estimators.reward_models import folds_of
from armwise.offline.evaluation.per_round_scores import Scored, evaluation, known_estimators, ratio, title
from armwise.offline.logs.rows import LogBlock, WeakLogWarning
from armwise.offline.logs.slate_log import ABSENT, SlateLog
from armwise.offline.results.estimates import Evaluation

_FALSE_ALARM = 0.01  # p-value of an assumption below which the verdict speaks against it
_ASSUMED = {
    "iips": "a slot's reward depends on the arms of other slots, which iips takes not to matter",
    "rips": "a slot's reward depends on the arms below it, which rips and cascade-dr take not to matter",
    "pi": "the reward is not a sum over the slots, which pi takes it for",
}
ESTIMATORS = ("sips", "iips", "rips", "pi", "cascade-dr", "sn-sips", "sn-iips", "sn-rips")


def evaluate_slates(
    log: SlateLog,
    policy: Any,
    estimators: str | Iterable[str] | None = None,
    *,
    marginals: Any = None,
    features: Callable[[Floats], Any] | None = None,
    level: float = 0.95,
    folds: int = 3,
    seed: int = 0,
    warn: bool = True,
) -> Evaluation:
    """Evaluate a ranking policy: the expected sum of rewards over the slots.

    ``policy`` is a function of the context and of the arms above, which answers an arm or a distribution (K,); a
    ``Ranker`` that knows its probabilities, as it is now (``features`` makes what it sees of a context: rows, one per
    arm); a list of arms, which is a fixed order (a slot shows the first of them that it may and that does not stand
    above it); an (n, L, K) array of its probabilities given the logged arms above; or (n, L), those of the logged arms.
    ``marginals`` (n, L): the target's for each slot on its own, where slots are not filled independently.

    "sips" weighs by the whole ranking: unbiased, much variance. "iips" takes each slot alone (its reward depends on
    its own arm only), "rips" on it and those above (a user who reads from the top), "pi" (Swaminathan et al. 2017) a
    reward of the whole that is a sum over slots filled independently, "cascade-dr" (Kiyohara et al. 2022) is "rips"
    with a cross-fitted model; "sn-" in front normalises. By default all that the log and the policy allow; "pi" is not
    among them where a slot's arm depended on those above (no ranking shows an arm twice, or marginals were given), nor
    "iips" where the marginals of such a log are not known.
    The assumptions of "iips", "rips", "cascade-dr" and "pi" are tested: the verdict says which do not hold, and where
    one is rejected or in doubt the interval reaches over that of "sips".

    >>> log = SlateLog(actions=[[0, 1], [1, 0]] * 100, rewards=[[1, 0], [0, 0], [1, 1], [0, 0]] * 50,
    ...                probabilities=[[0.5, 1], [0.5, 1]] * 100, n_arms=2)
    >>> first_then_second = lambda context, above: 1 if above else 0
    >>> evaluate_slates(log, first_then_second, "rips")["rips"].value
    1.5
    """
    if not isinstance(log, SlateLog):
        raise ValueError(f"log must be an armwise.offline.SlateLog, got {type(log).__name__}")
    if len(log) < 2:
        raise ValueError(f"the log has {len(log)} rows: there is nothing to evaluate on")
    fraction("level", level)
    target = _Target(log, _ranking(log, policy, features), marginals)
    names = _names(estimators, log, target)
    scorer = _Scorer(log, target, count("folds", folds, least=2), seed)
    result = evaluation({name: scorer.scored(name) for name in names}, target.name, level, rewards=log.totals,
                        per="ranking", about=[*log.remarks, *target.about(names)])  # fmt: skip
    if result.weaknesses and warn:
        warnings.warn(WeakLogWarning(result.verdict), stacklevel=2)
    return result


def _ranking(log: SlateLog, policy: Any, features: Any) -> Any:
    """A ranker's probabilities of every arm in every logged slot; any other policy as it is."""
    if not isinstance(policy, Ranker):
        if features is not None:
            raise ValueError("features must be left out: it makes the rows of a ranker, and policy is none")
        return policy
    if policy.n_arms is not None and policy.n_arms != log.n_arms:
        raise ValueError(f"policy ranks {policy.n_arms} arms, but the log has {log.n_arms}")
    if policy.sees == "features" and not callable(features):
        raise ValueError(f"features must make {type(policy).__name__}'s rows, one per arm, of a context of the log")
    n, L = log.actions.shape
    table = np.zeros((n, L, log.n_arms))
    for i in range(n):
        X = log.contexts[i] if features is None else features(log.contexts[i])
        X = None if policy.sees == "nothing" else X
        for slot in np.flatnonzero(log.present[i]).tolist():
            above = [arm for arm in log.actions[i, :slot].tolist() if arm != ABSENT]
            free = None if log.offered is None else [*above, *np.flatnonzero(log.offered[i, slot]).tolist()]
            try:
                p = policy.probabilities(X, above, available=None if free is None else sorted(set(free)))
            except ValueError as error:
                raise ValueError(f"policy, row {i}, slot {slot}: {error}") from None
            if p.shape != (log.n_arms,):
                raise ValueError(f"features, row {i}: it answered {len(p)} rows, but the log has {log.n_arms} arms")
            table[i, slot] = p
    return _Table(table, type(policy).__name__)


class _Table(NamedTuple):
    """Probabilities of every arm in every logged slot, and whose they are."""

    p: Floats
    name: str


class _Target:
    """The target's probabilities of the logged slots: given the slots above, marginal, and of every arm."""

    def __init__(self, log: SlateLog, policy: Any, marginals: Any) -> None:
        self.name = title(policy)
        n, L = log.actions.shape
        self.table: Floats | None = None
        if isinstance(policy, _Table):
            self.name, self.table = policy.name, _on_offer(log, policy.p)
        elif callable(policy):
            self.table = _asked(log, policy)
        elif isinstance(policy, (list, tuple)) and all(isinstance(arm, (str, int, np.integer)) for arm in policy):
            self.name, self.table = "a fixed order", _ordered(log, policy)
        else:
            try:
                array = np.asarray(policy, np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    "policy must be a function of the context and the arms above, or an array of probabilities, got "
                    f"{type(policy).__name__}"
                ) from None
            if array.shape == (n, L, log.n_arms):
                self.table = _on_offer(log, array)
            elif array.shape != (n, L):
                raise ValueError(
                    f"policy has shape {array.shape}, expected ({n}, {L}, {log.n_arms}) probabilities of all arms, or "
                    f"({n}, {L}) of the logged ones"
                )
        if self.table is not None:
            logged = np.take_along_axis(self.table, np.where(log.present, log.actions, 0)[:, :, None], axis=2)[:, :, 0]
        else:
            logged = array
        self.logged = np.where(log.present, logged, 1.0)
        if not ((self.logged >= 0) & (self.logged <= 1 + 1e-9)).all():
            raise ValueError("policy must answer probabilities, numbers in [0, 1]")
        self.borrowed = marginals is None and not log.independent
        self.marginals = self.logged if marginals is None else self._marginals(log, marginals)

    @staticmethod
    def _marginals(log: SlateLog, given: Any) -> Floats:
        try:
            p = np.broadcast_to(np.asarray(given, np.float64), log.actions.shape)
        except (TypeError, ValueError):
            raise ValueError(
                f"marginals must be probabilities of shape {log.actions.shape}, got shape {np.shape(given)}"
            ) from None
        if not ((p >= 0) & (p <= 1 + 1e-9))[log.present].all():
            raise ValueError("marginals must be probabilities, numbers in [0, 1]")
        return np.where(log.present, p, 1.0)

    def about(self, names: list[str]) -> list[str]:
        """Return a note about the target's probabilities."""
        alone = [name for name in names if name.removeprefix("sn-") in ("iips", "pi")]
        if not (self.borrowed and alone):
            return []
        return [f"{', '.join(alone)}: a slot's probability under the target is taken as that given the slots above it "
                "(marginals= of evaluate_slates says it, where that is another)"]  # fmt: skip


def _asked(log: SlateLog, policy: Any) -> Floats:
    n, L = log.actions.shape
    table = np.zeros((n, L, log.n_arms))
    for i in range(n):
        for slot in range(L):
            if not log.present[i, slot]:
                continue
            answer = policy(log.contexts[i], log.labels(log.actions[i, :slot].tolist()))
            if np.ndim(answer) == 0:
                arm = log.arm(answer)
                if arm is None:
                    known = log.arm_names if log.arm_names is not None else f"0 to {log.n_arms - 1}"
                    raise ValueError(
                        f"policy, row {i}, slot {slot}: it answered {answer!r}, expected an arm ({known!s:.80})"
                    )
                table[i, slot, arm] = 1.0
            elif np.shape(answer) == (log.n_arms,):
                table[i, slot] = answer
            else:
                raise ValueError(f"policy, row {i}, slot {slot}: it answered shape {np.shape(answer)}, expected an arm "
                                 f"or {log.n_arms} probabilities")  # fmt: skip
    return _on_offer(log, table)


def _ordered(log: SlateLog, order: Sequence[Any]) -> Floats:
    """Every slot's choice under a fixed order of arms."""
    places = [log.arm(arm) for arm in order]
    if None in places or len(set(places)) < len(places):
        raise ValueError(f"policy, as an order, must name different arms of the log, got {list(order)!r:.80}")
    n, L = log.actions.shape
    rank = np.full(log.n_arms, len(places))
    rank[np.array(places, np.int64)] = np.arange(len(places))
    table = np.zeros((n, L, log.n_arms))
    for slot in range(L):
        free = np.ones((n, log.n_arms), np.bool_) if log.offered is None else log.offered[:, slot].copy()
        for above in range(slot):
            there = np.flatnonzero(log.present[:, above])
            free[there, log.actions[there, above]] = False
        left = np.where(free, rank, len(places))
        chosen = left.argmin(axis=1)
        short = log.present[:, slot] & (left[np.arange(n), chosen] == len(places))
        if short.any():
            raise ValueError(f"policy, as an order, has no arm left for row {int(short.argmax())}, slot {slot}")
        table[np.arange(n), slot, chosen] = 1.0
    return table


def _on_offer(log: SlateLog, table: Floats) -> Floats:
    """Renormalise probabilities over the arms that a slot could show."""
    if log.offered is not None:
        table = np.where(log.offered, table, 0.0)
        totals = table.sum(axis=2, keepdims=True)
        if (totals[log.present] <= 0).any():
            row, slot = np.argwhere(log.present & (totals[:, :, 0] <= 0))[0]
            raise ValueError(f"policy, row {row}, slot {slot}: all its probability is on arms that were not on offer")
        table = table / np.where(totals > 0, totals, 1.0)
    wrong = log.present & (np.abs(table.sum(axis=2) - 1.0) > 1e-6)
    if wrong.any():
        row, slot = np.argwhere(wrong)[0]
        raise ValueError(
            f"policy, row {row}, slot {slot}: the probabilities sum to {table[row, slot].sum():.6g}, not 1"
        )
    return table


def _names(estimators: str | Iterable[str] | None, log: SlateLog, target: _Target) -> list[str]:
    per_slot, whole = log.rewards.ndim == 2, ("sips", "pi", "sn-sips")
    if estimators is None:
        together = _together(log)
        usable = ["sips", *(["pi"] if not together else [])]
        usable += ["iips"] if per_slot and not (together and log.independent) else []
        usable += ["rips"] if per_slot else []
        return usable + (["cascade-dr"] if per_slot and target.table is not None else [])
    names = known_estimators(estimators, ESTIMATORS)
    for name in names:
        if not per_slot and name not in whole:
            raise ValueError(f"{name} needs a reward per slot, but the log has one for the whole ranking")
        if name == "cascade-dr" and target.table is None:
            raise ValueError("cascade-dr needs the target's probabilities of all arms: a function, or (n, L, K)")
    return names


def _together(log: SlateLog) -> bool:
    """Return whether a slot's arm depended on the slots above: stated by the log, or no arm repeats."""
    if log.n_slots == 1 or not log.independent:
        return log.n_slots > 1
    shown = np.sort(log.actions, axis=1)
    twice = (shown[:, 1:] == shown[:, :-1]) & (shown[:, 1:] != ABSENT)
    return len(log) >= 100 and not twice.any() and log.n_arms <= 100


class _Scorer:
    def __init__(self, log: SlateLog, target: _Target, folds: int, seed: int) -> None:
        self.log, self.target, self.folds, self.seed = log, target, folds, seed
        self.down: Floats = np.cumprod(target.logged / log.probabilities, axis=1, dtype=np.float64)  # w_1 ... w_l
        self.alone = target.marginals / log.marginals

    def scored(self, name: str) -> Scored:
        if name.startswith("sn-"):
            return self._normalised(name[3:])
        log = self.log
        if name == "sips":
            return Scored(self._whole, self.down[:, -1])
        if name == "pi":
            # r (sum_l w_l - L + 1): the pseudo-inverse for slots filled independently
            weights = (self.alone - 1.0).sum(axis=1) + 1.0
            said = ("biased: pi is for slots that are filled independently, which these are not",) * _together(log)
            return self._tested("pi", weights * log.totals, weights, said)
        if name == "iips":
            scores = (self.alone * self._rewards()).sum(axis=1)
            return self._tested("iips", scores, self._mean(self.alone), self._dependent())
        scores = (self.down * self._rewards()).sum(axis=1) if name == "rips" else self._cascade()
        return self._tested("rips", scores, self._mean(self.down))

    def _tested(self, name: str, shown: Floats, weights: Floats, said: tuple[str, ...] = ()) -> Scored:
        """The scores with what a test says of their assumption: nothing, a wider interval, or a warning."""
        p = self._p_value(name)
        if p < _FALSE_ALARM:
            said = (*said, f"{_ASSUMED[name]} (p = {p:.1g}): take sips")
        return Scored(shown, weights, said, without=("sips", self._whole) if p < IN_DOUBT else None)

    @cached_property
    def _whole(self) -> Floats:
        return np.asarray(self.down[:, -1] * self.log.totals)

    def _p_value(self, name: str) -> float:
        """Of an estimator's assumption: its difference from "sips", which has none, and interactions."""
        whole = self.down[:, -1:]
        if name == "pi":
            weights = (self.alone - 1.0).sum(axis=1, keepdims=True) + 1.0
            doubts = [_difference(whole, weights, self.log.totals[:, None])]
        elif name == "rips":
            doubts = [_difference(whole, self.down, self._rewards())]
        else:  # it holds only if rips does
            doubts = [_difference(more, self.alone, self._rewards()) for more in (whole, self.down)]
        return shared_level([(8.0, self._interactions.p_value(name)), *((1.0, _p_value(doubt)) for doubt in doubts)])

    @cached_property
    def _interactions(self) -> Interactions:
        return Interactions(self.log)

    def _dependent(self) -> tuple[str, ...]:
        if not (self.log.independent and _together(self.log)):
            return ()
        return ("no ranking shows an arm twice, so the slots were not filled independently: give marginals=",)

    def _normalised(self, name: str) -> Scored:
        weights = {"sips": self.down[:, -1:], "iips": self.alone, "rips": self.down}[name]
        parts = [self.log.totals[:, None]] if name == "sips" else [self._rewards()]
        [rewards] = parts
        columns = [ratio(weights[:, j] * rewards[:, j], weights[:, j]) for j in range(weights.shape[1])]
        return Scored(np.sum(columns, axis=0), self._mean(weights))

    def _rewards(self) -> Floats:
        return np.asarray(self.log.rewards * self.log.present)

    def _mean(self, weights: Floats) -> Floats:
        return np.asarray(weights.mean(axis=1))

    def _cascade(self) -> Floats:
        """sum_l w_1..w_l (r_l - Q_l) + w_1..w_{l-1} E_pi[Q_l], Q_l the reward from slot l on (Kiyohara et al.)."""
        log, table = self.log, self.target.table
        assert table is not None
        n, L = log.actions.shape
        fold = folds_of(LogBlock(np.zeros(n, np.int64), np.zeros(n), 1), self.folds, self.seed)
        scores = np.zeros(n)
        before = np.column_stack([np.ones(n), self.down[:, :-1]])
        for f in range(self.folds):
            mine, others = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
            if not len(others):
                raise ValueError(f"the log has {n} rows, too few for {self.folds} folds")
            after_train, q_models = np.zeros(len(others)), []
            for slot in reversed(range(L)):  # the recursion of values, on the other folds alone
                outcome = self._rewards()[others, slot] + after_train
                model = _SlotModel(log, slot, others, outcome)
                q_models.append(model)
                after_train = np.einsum("nk,nk->n", table[others, slot], model.predict(others))
            for slot, model in zip(range(L), reversed(q_models), strict=True):
                q = model.predict(mine)
                there = log.present[mine, slot]
                own = q[np.arange(len(mine)), np.where(there, log.actions[mine, slot], 0)]
                expected = np.einsum("nk,nk->n", table[mine, slot], q)
                scores[mine] += there * (
                    self.down[mine, slot] * (self._rewards()[mine, slot] - own) + before[mine, slot] * expected
                )
        return scores


def _difference(more: Floats, fewer: Floats, rewards: Floats) -> Floats:
    """What rewards bring under one weight of each slot beyond another: of mean 0 where both are right.

    Rewards are less their mean: both weights have the mean 1, so that a constant changes nothing but what a sample adds
    whose weights average far from 1, since it has few rows of what the target shows.
    """
    total = np.abs(fewer).sum(axis=0)
    centred = rewards - (np.abs(fewer) * rewards).sum(axis=0) / np.where(total > 0, total, 1.0)
    return np.asarray(((more - fewer) * centred).sum(axis=1))


class _SlotModel:
    """A ridge model of the rewards from a slot on, given the context, the slot's arm and the arms above."""

    def __init__(self, log: SlateLog, slot: int, rows: Any, outcome: Floats) -> None:
        self._log, self._slot = log, slot
        there = log.present[rows, slot]
        used = rows[there]
        Z = np.hstack([self._base(used), np.eye(log.n_arms)[log.actions[used, slot]]])
        y = outcome[there]
        self._mean = float(y.mean()) if len(y) else 0.0
        self._theta = np.linalg.solve(Z.T @ Z + np.eye(Z.shape[1]), Z.T @ (y - self._mean))

    def _base(self, rows: Any) -> Floats:
        log, above = self._log, np.zeros((len(rows), self._log.n_arms))
        for slot in range(self._slot):
            there = log.present[rows, slot]
            above[np.flatnonzero(there), log.actions[rows, slot][there]] += 1.0
        return np.hstack([np.ones((len(rows), 1)), log.contexts[rows], above])

    def predict(self, rows: Any) -> Floats:
        base = self._base(rows)
        return np.asarray(self._mean + (base @ self._theta[: base.shape[1]])[:, None] + self._theta[base.shape[1] :])

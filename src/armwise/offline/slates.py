"""Logs of rankings: several slots per round, filled from the top; and what another ranking policy would have earned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.agent import Floats, count, fraction
from armwise.offline.diagnostics import WeakLogWarning
from armwise.offline.result import Evaluation
from armwise.offline.reward_models import folds_of
from armwise.offline.rows import LogBlock, LogError, floats
from armwise.offline.sampled import Scored, evaluation, ratio

ESTIMATORS = ("sips", "iips", "rips", "pi", "cascade-dr", "sn-sips", "sn-iips", "sn-rips")
_ABSENT = -1  # the action of a slot that a shorter ranking does not have


class SlateLog:
    """Rounds that showed a ranking of L slots: actions (n, L), rewards (n, L) per slot or (n,) for the whole.

    ``probabilities`` (n, L) are those of each slot's action given the slots above it, so that their product is the
    ranking's. ``marginals`` (n, L) are each slot's on its own; by default the same, which is right where slots are
    filled independently. A shorter ranking has -1 in the slots it lacks. ``offered`` (n, L, K) says which arms a slot
    could show. Readers: ``from_dsjson`` (VW's CCB and slates, and the multi-slot log of ``armwise serve``).

    >>> log = SlateLog(actions=[[0, 1], [1, 0]], rewards=[[1, 0], [0, 0]], probabilities=[[0.5, 1], [0.5, 1]], n_arms=2)
    >>> len(log), log.n_slots
    (2, 2)
    """

    def __init__(
        self, contexts: Any = None, actions: Any = None, rewards: Any = None, probabilities: Any = None, *,
        n_arms: int | None = None, marginals: Any = None, offered: Any = None, arm_names: Sequence[Any] | None = None,
    ) -> None:  # fmt: skip
        for name, values in (("actions", actions), ("rewards", rewards), ("probabilities", probabilities)):
            if values is None:
                raise LogError([f"{name} must be given, one for each slot of each row"])
        self.actions: NDArray[np.int64] = np.asarray(actions).astype(np.int64)
        if self.actions.ndim != 2:
            raise LogError([f"actions has shape {self.actions.shape}, expected (n, L): one arm for each slot"])
        self.present = self.actions != _ABSENT
        self.rewards = floats("rewards", rewards)
        self.probabilities = np.where(self.present, floats("probabilities", probabilities), 1.0)
        self.n_arms = count("n_arms", int(self.actions.max(initial=0)) + 1 if n_arms is None else n_arms)
        self.contexts = np.empty((len(self.actions), 0)) if contexts is None else floats("contexts", contexts)
        self.marginals = (
            self.probabilities if marginals is None else np.where(self.present, floats("marginals", marginals), 1.0)
        )
        self.independent = marginals is None  # as far as the log says
        self.offered = None if offered is None else np.asarray(offered, dtype=bool)
        self.arm_names = list(arm_names) if arm_names is not None else None
        self._check()

    def _check(self) -> None:
        n, L = self.actions.shape
        found = []
        if self.rewards.shape not in ((n, L), (n,)):
            found.append(f"rewards has shape {self.rewards.shape}, expected ({n}, {L}) per slot or ({n},)")
        if len(self.contexts) != n or self.contexts.ndim != 2:
            found.append(f"contexts has shape {self.contexts.shape}, expected ({n}, d)")
        if self.offered is not None and self.offered.shape != (n, L, self.n_arms):
            found.append(f"offered has shape {self.offered.shape}, expected ({n}, {L}, {self.n_arms})")
        for name in ("probabilities", "marginals"):
            p = getattr(self, name)
            if p.shape != (n, L):
                found.append(f"{name} has shape {p.shape}, expected ({n}, {L})")
            elif not ((p > 0) & (p <= 1 + 1e-9)).all():
                row, slot = np.argwhere(~((p > 0) & (p <= 1 + 1e-9)))[0]
                found.append(f"row {row}, slot {slot}: {name} has {p[row, slot]}, expected a number in (0, 1]")
        wrong = self.present & ((self.actions < 0) | (self.actions >= self.n_arms))
        if wrong.any():
            row, slot = np.argwhere(wrong)[0]
            found.append(
                f"row {row}, slot {slot}: the arm is {self.actions[row, slot]}, expected 0 to {self.n_arms - 1}"
            )
        if not found and not (np.isfinite(self.rewards).all() and np.isfinite(self.contexts).all()):
            found.append("rewards and contexts must be finite numbers")
        if found:
            raise LogError(found)

    @classmethod
    def from_dsjson(cls, path: Any, **options: Any) -> SlateLog:
        """From VW's CCB or slates logs, or the service's log of multi-slot decisions, one JSON object a line.

        >>> import json, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "ccb.dsjson")
        >>> slot = {"_label_cost": -1.0, "_a": [1, 0], "_p": [0.75, 0.25]}
        >>> with open(path, "w") as file:
        ...     json.dump({"c": {"_multi": [{"x": 1}, {"x": 2}], "_slots": [{}]}, "_outcomes": [slot]}, file)
        >>> log = SlateLog.from_dsjson(path)
        >>> log.actions.tolist(), log.rewards.tolist(), log.probabilities.tolist()
        ([[1]], [[1.0]], [[0.75]])
        """
        read: Callable[..., SlateLog] = import_module("armwise.offline.slots").read  # which knows SlateLog
        return read(path, **options)

    @property
    def n_slots(self) -> int:
        """How many slots the longest ranking has."""
        return int(self.actions.shape[1])

    @property
    def totals(self) -> Floats:
        """The reward of each whole ranking."""
        return self.rewards if self.rewards.ndim == 1 else np.asarray((self.rewards * self.present).sum(axis=1))

    def __len__(self) -> int:
        return len(self.actions)


def evaluate_slates(
    log: SlateLog,
    policy: Any,
    estimators: str | Iterable[str] | None = None,
    *,
    marginals: Any = None,
    level: float = 0.95,
    folds: int = 3,
    seed: int = 0,
    warn: bool = True,
) -> Evaluation:
    """What another ranking policy would have earned, summed over the slots.

    ``policy`` is a function of the context and of the arms above, which answers an arm or a distribution (K,); an
    (n, L, K) array of its probabilities given the logged arms above; or (n, L), those of the logged arms alone.
    ``marginals`` (n, L): the target's for each slot on its own, where slots are not filled independently.

    "sips" weighs by the whole ranking: unbiased, much variance. "iips" takes each slot alone (its reward depends on
    its own arm only), "rips" on it and those above (a user who reads from the top), "pi" (Swaminathan et al. 2017) a
    reward of the whole that is a sum over slots filled independently, "cascade-dr" (Kiyohara et al. 2022) is "rips"
    with a cross-fitted model; "sn-" in front normalises. By default all that the log and the policy allow.

    >>> log = SlateLog(actions=[[0, 1], [1, 0]] * 50, rewards=[[1, 0], [0, 0]] * 50,
    ...                probabilities=[[0.5, 1], [0.5, 1]] * 50, n_arms=2)
    >>> first_then_second = lambda context, above: 1 if above else 0
    >>> evaluate_slates(log, first_then_second, "rips")["rips"].value
    1.0
    """
    if not isinstance(log, SlateLog):
        raise ValueError(f"log must be an armwise.offline.SlateLog, got {type(log).__name__}")
    if len(log) < 2:
        raise ValueError(f"the log has {len(log)} rows: there is nothing to evaluate on")
    fraction("level", level)
    target = _Target(log, policy, marginals)
    names = _names(estimators, log, target)
    scorer = _Scorer(log, target, count("folds", folds, least=2), seed)
    result = evaluation({name: scorer.scored(name) for name in names}, target.name, level)
    if result.weaknesses and warn:
        warnings.warn(WeakLogWarning(result.verdict), stacklevel=2)
    return result


class _Target:
    """The target's probabilities of the logged actions: given those above, each on its own, and of every arm."""

    def __init__(self, log: SlateLog, policy: Any, marginals: Any) -> None:
        self.name = getattr(policy, "__name__", type(policy).__name__)
        n, L = log.actions.shape
        self.table: Floats | None = None
        if callable(policy):
            self.table = _asked(log, policy)
        else:
            array = np.asarray(policy, np.float64)
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
        self.marginals = (
            self.logged
            if marginals is None
            else np.where(log.present, np.broadcast_to(np.asarray(marginals, np.float64), (n, L)), 1.0)
        )


def _asked(log: SlateLog, policy: Any) -> Floats:
    n, L = log.actions.shape
    table = np.zeros((n, L, log.n_arms))
    for i in range(n):
        for slot in range(L):
            if not log.present[i, slot]:
                continue
            answer = policy(log.contexts[i], log.actions[i, :slot].tolist())
            if isinstance(answer, str) and log.arm_names is not None and answer in log.arm_names:
                answer = log.arm_names.index(answer)
            if np.ndim(answer) == 0:
                table[i, slot, int(answer)] = 1.0
            else:
                table[i, slot] = answer
    return _on_offer(log, table)


def _on_offer(log: SlateLog, table: Floats) -> Floats:
    """Mass on arms that a slot could not show goes, in proportion, to those that it could."""
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
        usable = ["sips", "pi", *(["iips", "rips"] if per_slot else [])]
        return usable + (["cascade-dr"] if per_slot and target.table is not None else [])
    names = [estimators] if isinstance(estimators, str) else list(estimators)
    for name in names:
        if name not in ESTIMATORS:
            raise ValueError(f"estimators has {name!r}, expected {', '.join(ESTIMATORS)}")
        if not per_slot and name not in whole:
            raise ValueError(f"{name} needs a reward per slot, but the log has one for the whole ranking")
        if name == "cascade-dr" and target.table is None:
            raise ValueError("cascade-dr needs the target's probabilities of all arms: a function, or (n, L, K)")
    return names


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
            return Scored(self.down[:, -1] * log.totals, self.down[:, -1])
        if name == "pi":
            # r (sum_l w_l - L + 1): the pseudo-inverse for slots filled independently
            weights = (self.alone - 1.0).sum(axis=1) + 1.0
            return Scored(weights * log.totals, np.maximum(weights, 0.0), self._dependent())
        if name == "iips":
            return Scored((self.alone * self._rewards()).sum(axis=1), self._mean(self.alone), self._dependent())
        if name == "rips":
            return Scored((self.down * self._rewards()).sum(axis=1), self._mean(self.down))
        return Scored(self._cascade(), self._mean(self.down))

    def _dependent(self) -> tuple[str, ...]:
        if self.log.n_slots == 1 or not self.log.independent:
            return ()
        shown = np.sort(self.log.actions, axis=1)
        twice = (shown[:, 1:] == shown[:, :-1]) & (shown[:, 1:] != _ABSENT)
        if len(self.log) >= 100 and not twice.any() and self.log.n_arms <= 100:
            return ("no ranking shows an arm twice, so the slots were not filled independently: give marginals=",)
        return ()

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


class _SlotModel:
    """A ridge of what comes from a slot on: the context, the slot's arm, and the arms above."""

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

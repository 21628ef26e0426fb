"""A log of rankings: several slots per round, filled from the top, and everything that can be wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats, count
from armwise.offline.logs.labels import ArmNames, as_places, labels_of, placed, whole
from armwise.offline.logs.rows import LogError, floats

ABSENT = -1  # the action of a slot that a shorter ranking does not have


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
        remarks: Sequence[str] = (),
    ) -> None:  # fmt: skip
        for name, values in (("actions", actions), ("rewards", rewards), ("probabilities", probabilities)):
            if values is None:
                raise LogError([f"{name} must be given, one for each slot of each row"])
        self._named: list[tuple[Any, list[Any]]] | None = None  # each row's context and arms, where a file names them
        self.remarks = list(remarks)  # what a reader has to know of where the rows come from
        self.actions, self.arm_names = _numbered(actions, n_arms, arm_names)
        known = int(self.actions.max(initial=0)) + 1 if self.arm_names is None else len(self.arm_names)
        self.n_arms = count("n_arms", known if n_arms is None else n_arms)
        self._labels = ArmNames(self.arm_names, self.n_arms)
        self.present = self.actions != ABSENT
        self.rewards = floats("rewards", rewards)
        self.contexts = np.empty((len(self.actions), 0)) if contexts is None else floats("contexts", contexts)
        self.probabilities = self._shares("probabilities", probabilities)
        self.marginals = self.probabilities if marginals is None else self._shares("marginals", marginals)
        self.offered = None if offered is None else np.asarray(offered, dtype=bool)
        self._check()
        # As far as the log says: then the product of the marginals is the ranking's probability.
        self.independent = marginals is None or bool(np.allclose(self.marginals, self.probabilities, atol=1e-9))

    def _shares(self, name: str, values: Any) -> Floats:
        p = floats(name, values)
        if p.shape != self.actions.shape:
            raise LogError(
                [f"{name} has shape {p.shape}, expected {self.actions.shape}: one for each slot of each row"]
            )
        return np.where(self.present, p, 1.0)

    def _check(self) -> None:
        n, L = self.actions.shape
        found = []
        if self.rewards.shape not in ((n, L), (n,)):
            found.append(f"rewards has shape {self.rewards.shape}, expected ({n}, {L}) per slot or ({n},)")
        if len(self.contexts) != n or self.contexts.ndim != 2:
            found.append(f"contexts has shape {self.contexts.shape}, expected ({n}, d)")
        if self.offered is not None and self.offered.shape != (n, L, self.n_arms):
            found.append(f"offered has shape {self.offered.shape}, expected ({n}, {L}, {self.n_arms})")
        for name in ("probabilities", *(["marginals"] if self.marginals is not self.probabilities else [])):
            p = getattr(self, name)
            if not ((p > 0) & (p <= 1 + 1e-9)).all():
                row, slot = np.argwhere(~((p > 0) & (p <= 1 + 1e-9)))[0]
                found.append(f"row {row}, slot {slot}: {name} has {p[row, slot]}, expected a number in (0, 1]")
        wrong = self.present & ((self.actions < 0) | (self.actions >= self.n_arms))
        if wrong.any():
            row, slot = np.argwhere(wrong)[0]
            found.append(
                f"row {row}, slot {slot}: the arm is {self.actions[row, slot]}, expected 0 to {self.n_arms - 1}"
            )
        for name in ("rewards", "contexts"):
            wild = np.argwhere(~np.isfinite(getattr(self, name)))
            if len(wild):
                found.append(f"row {wild[0][0]}: {name} holds NaN or infinity, expected finite numbers")
        if found:
            raise LogError(found)

    def arm(self, answer: Any) -> int | None:
        """The number of an arm that a policy answered, by its number or its name; None if there is no such arm.

        >>> SlateLog(actions=[["b", "a"]], rewards=[1.0], probabilities=[[0.5, 1.0]]).arm("b")
        1
        """
        return None if isinstance(answer, bool) else self._labels.place(answer)

    def labels(self, places: Sequence[int]) -> list[Any]:
        """These arms as a policy calls them: by their ids, where the log has some, otherwise by their numbers.

        >>> SlateLog(actions=[[7, 5]], rewards=[1.0], probabilities=[[0.5, 1.0]]).labels([0, 1])
        [5, 7]
        """
        return [places[i] if self._labels.ids is None else self._labels.ids[places[i]] for i in range(len(places))]

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
        from armwise.offline.logs.formats import slate_json

        found = slate_json.read(path, **options)
        named = found.pop("named")
        log = cls(**found)
        log._named = named
        return log

    def to_dsjson(self, path: Any) -> None:
        """Write VW's CCB format, one ranking a line: costs are negative rewards, ``_inc`` is what a slot could show.

        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "ccb.dsjson")
        >>> log = SlateLog(actions=[["b", "a"]], rewards=[[1.0, 0.0]], probabilities=[[0.5, 1.0]])
        >>> log.to_dsjson(path)
        >>> SlateLog.from_dsjson(path).actions.tolist(), SlateLog.from_dsjson(path).arm_names
        ([[1, 0]], ['a', 'b'])
        """
        from armwise.offline.logs.formats import slate_json

        slate_json.write(self, path)

    def decisions(self) -> Iterator[dict[str, Any]]:
        """Each slot as a decision, as ``Decider.warm_start`` takes them and ``Decider.rank`` makes them: the context
        with the slot's position beside it, and the arms that the slots above left.

        >>> log = SlateLog(actions=[["b", "a"]], rewards=[[1.0, 0.0]], probabilities=[[0.5, 1.0]])
        >>> [(row["arms"], row["arm"], row["context"]) for row in log.decisions()][1]
        (['a'], 'a', {'slot': {'position': '2'}})
        """
        if self.rewards.ndim == 1:
            raise ValueError("log has one reward for the whole ranking: a decision of a slot needs a reward of its own")
        names = [str(name) for name in (range(self.n_arms) if self.arm_names is None else self.arm_names)]
        for i, actions in enumerate(self.actions.tolist()):
            context: Any = {f"x{j}": x for j, x in enumerate(self.contexts[i].tolist())}
            arms: list[Any] = list(names)
            if self._named is not None:
                context, some = self._named[i]
                known = {arm["id"]: arm for arm in some}
                arms = [known.get(name, name) for name in names]
            for slot, arm in enumerate(actions):
                if arm == ABSENT:
                    continue
                left = [k for k in range(self.n_arms) if k not in actions[:slot]]
                if self.offered is not None:
                    left = [k for k in left if self.offered[i, slot, k]]
                parts = context if isinstance(context, list) else [context]
                whole = {name: value for part in parts for name, value in part.items()}
                yield {
                    "context": whole | {"slot": {"position": str(slot + 1)}}, "arms": [arms[k] for k in left],
                    "arm": names[arm], "probability": float(self.probabilities[i, slot]),
                    "reward": float(self.rewards[i, slot]),
                }  # fmt: skip

    @property
    def n_slots(self) -> int:
        """The number of slots of the longest ranking."""
        return int(self.actions.shape[1])

    @property
    def totals(self) -> Floats:
        """The reward of each whole ranking."""
        return self.rewards if self.rewards.ndim == 1 else np.asarray((self.rewards * self.present).sum(axis=1))

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        if self.rewards.ndim == 1:
            earned = (
                f"one reward per list, {self.rewards.mean():.3g} on average" if len(self) else "one reward per list"
            )
        else:
            shown = np.maximum(self.present.sum(axis=0), 1)
            means = (self.rewards * self.present).sum(axis=0) / shown
            some = ", ".join(f"{mean:.3g}" for mean in means[:8]) + (", ..." if len(means) > 8 else "")
            earned = f"rewards by slot {some}"
        return f"<SlateLog of {len(self):,} lists of {self.n_slots} slots, {self.n_arms} arms, {earned}>"


def _numbered(
    actions: Any, n_arms: int | None, names: Sequence[Any] | None
) -> tuple[NDArray[np.int64], list[Any] | None]:
    """Actions as numbers from 0, and the arms' names, where there are any: texts, or ids that are no places."""
    try:
        array = np.asarray(actions)
    except ValueError:  # rankings of several lengths
        raise LogError(["actions must be one table (n, L): fill up shorter rankings with -1"]) from None
    if array.ndim != 2:
        raise LogError([f"actions has shape {array.shape}, expected (n, L): one arm for each slot"])
    if array.dtype.kind in "OUS":
        kept = (
            list(names) if names is not None else sorted({str(a) for a in array.flat if a is not None and a != ABSENT})
        )
        numbers = placed(np.array([a if a is None or a == ABSENT else str(a) for a in array.flat], object),
                         [str(name) for name in kept]).reshape(array.shape)  # fmt: skip
        unknown = (numbers < 0) & np.array([a is not None and a != ABSENT for a in array.flat]).reshape(array.shape)
        if unknown.any():
            row, slot = np.argwhere(unknown)[0]
            raise LogError([f"row {row}, slot {slot}: the arm is {str(array[row, slot])!r}, which is not in arm_names"])
        return numbers, kept
    values = array if array.dtype.kind in "biu" else floats("actions", array)
    numbers, wrong = whole(values.ravel())
    if wrong.any():
        row, slot = np.argwhere(wrong.reshape(array.shape))[0]
        raise LogError([f"row {row}, slot {slot}: actions has {values[row, slot]}, expected a whole number"])
    shown = numbers[numbers != ABSENT] if numbers.dtype.kind == "i" else numbers
    ids = labels_of(np.unique(shown).tolist()) if n_arms is None and names is None else None
    if ids is not None:  # categories, not "as many arms as the largest"
        return placed(numbers, ids).reshape(array.shape), ids
    return as_places(numbers).reshape(array.shape), None if names is None else list(names)

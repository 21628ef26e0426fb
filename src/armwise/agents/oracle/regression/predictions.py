"""Predictions of learners for a block, many rounds per call."""

from __future__ import annotations

from armwise.agents.oracle.oracles.sklearn_oracles import ExampleLearner, SklearnEstimator
from armwise.core.agent import Floats

MIN_ROUNDS, MAX_ROUNDS = 64, 4096  # asked at a time: a call of predict costs much more than a row


class Predictions:
    """Predictions for the next rounds of a block, renewed when a learner has been fitted again."""

    def __init__(self, block: Floats, first: int) -> None:
        self.block, self.first = block, first  # (T, rows per round, d), and the round of its first entry
        self._known: dict[int, tuple[SklearnEstimator | None, int, Floats]] = {}

    def predict(self, learner: ExampleLearner, t: int) -> Floats:
        """The learner's predictions for the rows of round t."""
        now = t - self.first
        if learner.incremental:  # it changes with every example
            return learner.predict(self.block[now])
        model, start, values = self._known.get(id(learner), (None, 0, self.block[:0]))
        if model is None or model is not learner.model or now >= start + len(values):
            least = MIN_ROUNDS
            if model is learner.model and model is not None:
                least = 2 * len(values)  # it has outlasted what was predicted: an arm that is hardly played
            rows = self.block[now : now + min(max(least, learner.steady_rounds + 1), MAX_ROUNDS)]
            values = learner.predict(rows.reshape(-1, rows.shape[2])).reshape(rows.shape[:2])
            start = now
            self._known[id(learner)] = (learner.model, start, values)
        row: Floats = values[now - start]
        return row

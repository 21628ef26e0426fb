"""Eppo's model format, which its SDKs evaluate at the edge: inverse-gap weighting over linear scores of attributes.

A score there is an intercept plus a coefficient for each number and for each value of a category; a missing number,
and a value without a coefficient, have coefficients of their own. ``EppoColumns`` makes the rows of such scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from armwise.core.agent import Floats
from armwise.core.arguments import short
from armwise.core.policy_document import CannotExport, Policy


class EppoColumns:
    """Rows of the attributes that contexts have: a constant, each number, each value of a category, each thing missing.

    A number is a column of its own and one that is 1 where it is missing; a category has a column for each value that
    ``contexts`` has, and one for no value or another. Booleans and texts are categories.

    >>> columns = EppoColumns([{"age": 30, "plan": "pro"}, {"age": 41, "plan": "free"}])
    >>> columns.names
    ['1', 'age', 'age?', 'plan=free', 'plan=pro', 'plan?']
    >>> columns.rows([{"age": 5, "plan": "pro"}, {"plan": "new"}])
    array([[1., 5., 0., 0., 1., 0.],
           [1., 0., 1., 0., 0., 1.]])
    """

    def __init__(self, contexts: Iterable[Mapping[str, Any]] = ()) -> None:
        numbers: set[str] = set()
        categories: dict[str, set[str]] = {}
        for context in contexts:
            if not isinstance(context, Mapping):
                raise ValueError(f"contexts must be dictionaries of attributes, got {short(context)}")
            for name, value in context.items():
                if isinstance(value, (bool, str)):
                    categories.setdefault(name, set()).add(_text(value))
                elif isinstance(value, (int, float)) and math.isfinite(value):
                    numbers.add(name)
                elif value is not None:
                    raise ValueError(f"{name} must be a finite number, a text or a boolean, got {value!r:.60}")
        if both := sorted(numbers & set(categories)):
            raise ValueError(f"{both[0]} is a number in some contexts and a text in others: give it one type")
        self.numbers = sorted(numbers)
        self.categories = {name: sorted(values) for name, values in sorted(categories.items())}

    @property
    def names(self) -> list[str]:
        """The columns, in their order.

        >>> EppoColumns().names
        ['1']
        """
        pairs = [[name, f"{name}?"] for name in self.numbers]
        pairs += [[*(f"{name}={value}" for value in values), f"{name}?"] for name, values in self.categories.items()]
        return ["1", *(name for pair in pairs for name in pair)]

    def rows(self, contexts: Iterable[Mapping[str, Any]]) -> Floats:
        """One row per context.

        >>> EppoColumns().rows([{}])
        array([[1.]])
        """
        return np.array([self._row(context) for context in contexts], np.float64).reshape(-1, len(self.names))

    def _row(self, context: Mapping[str, Any]) -> list[float]:
        row = [1.0]
        for name in self.numbers:
            value = context.get(name)
            known = isinstance(value, (int, float)) and not isinstance(value, bool)
            row += [float(value), 0.0] if known and value is not None else [0.0, 1.0]
        for name, values in self.categories.items():
            value = context.get(name)
            own = [float(isinstance(value, (bool, str)) and _text(value) == each) for each in values]
            row += [*own, 0.0 if any(own) else 1.0]
        return row

    def coefficients(self, weights: Sequence[float], side: str) -> dict[str, Any]:
        """Weights by column as Eppo has them; ``side`` is subject or action.

        >>> EppoColumns([{"age": 3}]).coefficients([1.0, 2.0, 3.0], "subject")["subjectNumericCoefficients"]
        [{'attributeKey': 'age', 'coefficient': 2.0, 'missingValueCoefficient': 3.0}]
        """
        left = iter(weights)
        intercept = next(left)
        numeric = [
            {"attributeKey": name, "coefficient": next(left), "missingValueCoefficient": next(left)}
            for name in self.numbers
        ]
        categorical = [
            {
                "attributeKey": name,
                "valueCoefficients": {value: next(left) for value in values},
                "missingValueCoefficient": next(left),
            }
            for name, values in self.categories.items()
        ]
        other = "action" if side == "subject" else "subject"
        return {
            "intercept": intercept,
            f"{side}NumericCoefficients": numeric, f"{side}CategoricalCoefficients": categorical,
            f"{other}NumericCoefficients": [], f"{other}CategoricalCoefficients": [],
        }  # fmt: skip


def _text(value: str | bool) -> str:
    return value if isinstance(value, str) else "true" if value else "false"


def eppo(
    policy: Policy, key: str, columns: EppoColumns, *, actions: Sequence[str] = (), updated_at: str | None = None
) -> dict[str, Any]:
    """The ``bandits`` document that has this policy as the model of bandit ``key``, with checksum and position.

    The agent is ``SquareCB`` with a ``gamma`` of its own, over the rows of ``columns``: with ``n_arms`` they are the
    subject's, without they are each action's, and ``actions`` names those that it may be asked about. Ties go to one
    action by its name there and are shared here: probabilities differ where two best scores are equal.

    >>> import armwise as aw, os, tempfile
    >>> columns = EppoColumns([{"age": 30}])
    >>> agent = aw.SquareCB(len(columns.names), n_arms=2, gamma=10.0, lam=1.0)
    >>> policy = agent.policy(columns=columns.names, arms=["red", "green"])
    >>> eppo(policy, "colours", columns)["bandits"]["colours"]["modelData"]["gamma"]
    10.0
    """
    made, rule = policy.document, policy.document["rule"]
    if rule["kind"] != "inverse gap" or rule["extra"] or rule["losses"] or made["floors"]:
        raise CannotExport(
            f"{made['agent']} cannot be exported exactly to Eppo, whose rule is inverse-gap weighting alone; the "
            "nearest that can be is SquareCB(dim, gamma=...) without a floor, taught from the same log (aw.fit_log)"
        )
    if made["encoder"]["kind"] != "columns" or made["encoder"]["columns"] != columns.names:
        raise CannotExport(
            "rows that are hashed, or of other columns, cannot be exported exactly to Eppo, whose scores are sums over "
            "attributes; the nearest that can be is SquareCB over EppoColumns, taught from the same log (aw.fit_log), "
            "exported with columns=columns.names"
        )
    shared = made["sees"] == "shared"
    names, models = (made["arms"], made["models"]) if shared else (actions, made["models"] * len(actions))
    if not names:
        raise ValueError("actions must name what the policy may be asked about: its rows describe actions")
    side = "subject" if shared else "action"
    coefficients = {
        name: {"actionKey": name, **columns.coefficients(model["weights"], side)} for name, model in zip(names, models)
    }
    bandit = {
        "banditKey": key, "modelName": "falcon", "modelVersion": model_version(policy),
        "modelData": {"gamma": rule["gamma"], "defaultActionScore": 0.0, "actionProbabilityFloor": 0.0,
                      "coefficients": coefficients},
    }  # fmt: skip
    moment = updated_at or "1970-01-01T00:00:00.000Z"
    return {
        "updatedAt": moment,
        "environment": {"name": "armwise"},
        "bandits": {key: bandit | {"updatedAt": moment}},
    }


def model_version(policy: Policy) -> str:
    """A policy's version in Eppo's logs: the first digits of its checksum, and its position in the journal."""
    position = policy.document["position"]
    return policy.checksum[:16] + ("" if position is None else f"@{position}")


def eppo_flag(key: str, model: str, *, flag: str | None = None) -> dict[str, Any]:
    """The ``flags`` document that gives all traffic to bandit ``key``; for clients without Eppo's own service.

    >>> sorted(eppo_flag("colours", "3ab4")["flags"])
    ['colours']
    """
    named = flag or key
    variation = {"key": key, "flagKey": named, "allocationKey": "all", "variationKey": key, "variationValue": key}
    return {
        "createdAt": "1970-01-01T00:00:00.000Z", "format": "SERVER", "environment": {"name": "armwise"},
        "flags": {named: {
            "key": named, "enabled": True, "variationType": "STRING", "variations": {key: {"key": key, "value": key}},
            "allocations": [
                {"key": "all", "rules": [], "splits": [{"variationKey": key, "shards": []}], "doLog": True}
            ],
            "totalShards": 10000,
        }},
        "bandits": {key: [variation]},
        "banditReferences": {key: {"modelVersion": model, "flagVariations": [variation]}},
    }  # fmt: skip


def evaluate_eppo(
    model: Mapping[str, Any], subject: Mapping[str, Any], actions: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """The weights of actions under a ``modelData`` of Eppo's format, as its SDKs work them out."""
    scores = {
        name: _score(model["coefficients"].get(name), subject, own, model["defaultActionScore"])
        for name, own in actions.items()
    }
    names = sorted(scores)  # ties go to the first by name
    best, K = max(names, key=lambda name: scores[name]), len(names)
    weights = {
        name: max(model["actionProbabilityFloor"] / K, 1.0 / (K + model["gamma"] * (scores[best] - scores[name])))
        for name in names
        if name != best
    }
    weights[best] = max(0.0, 1.0 - sum(weights.values()))
    return {name: weights[name] for name in names}


def _score(
    model: Mapping[str, Any] | None, subject: Mapping[str, Any], action: Mapping[str, Any], default: float
) -> float:
    if model is None:
        return default
    score = float(model["intercept"])
    for side, given in (("action", action), ("subject", subject)):
        for each in model[f"{side}NumericCoefficients"]:
            value = given.get(each["attributeKey"])
            known = isinstance(value, (int, float)) and not isinstance(value, bool)
            score += each["coefficient"] * value if known else each["missingValueCoefficient"]
        for each in model[f"{side}CategoricalCoefficients"]:
            value = given.get(each["attributeKey"])
            named = _text(value) if isinstance(value, (bool, str)) else None
            score += each["valueCoefficients"].get(named, each["missingValueCoefficient"])
    return score


def to_json(document: Mapping[str, Any]) -> bytes:
    """A document as Eppo's SDKs read it."""
    return msgspec.json.encode(document)

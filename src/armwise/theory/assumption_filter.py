"""The survey's filter: which agents an assumption leaves ("choose the one that matches our assumptions")."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from armwise.core.agent import Agent, Theory, count, fraction
from armwise.theory.algorithm_table import AlgorithmTable, TableFormat, agents, formatted, rankers, row_of

# Constants of calls and bounds that the user does not give: contexts C, noise R, norms S and L, ridge lam, epsilon.
_UNSAID = {"C": 10, "R": 0.1, "S": 1.0, "L": 1.0, "lam": 1.0, "epsilon": 0.1}
_ONE_MODEL_EACH = ("SquareCB",)  # of the calls: K models of d features are a model of K d
_OWN_LETTERS = ("spectral_ucb", "ve")  # their d is an effective or a VC dimension, not the number of features


@dataclass(frozen=True)
class Verdict:
    """Whether an agent fits, the reason, a call that makes it, and its bound for the user's sizes (None if the bound
    has constants that the sizes do not determine).
    """

    agent: str
    stays: bool
    reason: str
    call: str
    bound: float | None


@dataclass(frozen=True)
class Verdicts:
    """The verdict on every agent, those that fit first; prints as text, ``data`` is for machines."""

    assumptions: dict[str, bool]
    verdicts: tuple[Verdict, ...]
    horizon: int

    @property
    def stay(self) -> tuple[Verdict, ...]:
        """The agents that fit, best first."""
        return tuple(verdict for verdict in self.verdicts if verdict.stays)

    @property
    def go(self) -> tuple[Verdict, ...]:
        """The agents that do not fit."""
        return tuple(verdict for verdict in self.verdicts if not verdict.stays)

    def __getitem__(self, agent: str) -> Verdict:
        return {verdict.agent: verdict for verdict in self.verdicts}[agent]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def data(self) -> dict[str, Any]:
        """Plain dicts and lists."""
        return {"assumptions": self.assumptions, "verdicts": [asdict(verdict) for verdict in self.verdicts]}

    def __str__(self) -> str:
        assumptions = ", ".join(f"{name}={value}" for name, value in self.assumptions.items()) or "nothing"
        lines = [f"Assumed: {assumptions}.", ""]
        for verdict in self.stay:
            lines += [f"+ {verdict.agent}: {verdict.reason}{self._bound(verdict)}", f"    {verdict.call}"]
        if not self.stay:
            lines.append("No agent fits all of this: drop the assumption that most of these reasons name.")
        lines += ["", *(f"- {verdict.agent}: {verdict.reason}" for verdict in self.go)]
        return "\n".join(lines).rstrip()

    __repr__ = __str__

    def _bound(self, verdict: Verdict) -> str:
        if verdict.bound is None:
            return ""
        vacuous = ", which says nothing yet" if verdict.bound >= self.horizon else ""
        return f" Bound after {self.horizon:,} rounds: {verdict.bound:,.0f}{vacuous}."


def verdicts(
    *,
    adversarial: bool | None = None,
    linear: bool | None = None,
    smooth: bool | None = None,
    horizon_known: bool | None = None,
    infinite_policies: bool | None = None,
    high_probability: bool | None = None,
    n_arms: int = 10,
    dim: int = 5,
    horizon: int = 10_000,
    n_policies: int = 16,
    delta: float = 0.05,
) -> Verdicts:
    """Find the agents that fit your assumptions, why the others do not, and calls that make them.

    Each assumption is True, False or None (unknown). ``adversarial``: rewards may be chosen by an adversary.
    ``linear``: an arm's expected reward is linear in its features. ``smooth``: it is a smooth function of them (small
    norm in the space of a kernel). ``horizon_known``: the number of rounds is known in advance. ``infinite_policies``:
    you compete with an infinite class. ``high_probability``: a bound in expectation is not enough. The sizes fill in
    the calls and the bounds.
    """
    assumptions = {
        "adversarial": adversarial,
        "linear": linear,
        "smooth": smooth,
        "horizon_known": horizon_known,
        "infinite_policies": infinite_policies,
        "high_probability": high_probability,
    }
    for name, value in assumptions.items():
        if value not in (True, False, None):
            raise ValueError(f"{name} must be True, False or None (unknown), got {value!r}")
    sizes: dict[str, Any] = {
        "K": count("n_arms", n_arms, least=2),
        "d": count("dim", dim, least=2),
        "T": count("horizon", horizon),
        "N": count("n_policies", n_policies, least=2),
        "delta": fraction("delta", delta),
        **_UNSAID,
    }
    assumed = {name: bool(value) for name, value in assumptions.items() if value is not None}
    found = [_verdict(name, agent, assumed, sizes) for name, agent in agents().items()]
    found.sort(key=lambda verdict: (not verdict.stays, *_rank(agents()[verdict.agent], assumed)))
    return Verdicts(assumed, tuple(found), sizes["T"])


def table(
    format: TableFormat = "text",
    *,
    adversarial: bool | None = None,
    linear: bool | None = None,
    smooth: bool | None = None,
    horizon_known: bool | None = None,
    infinite_policies: bool | None = None,
    high_probability: bool | None = None,
    n_arms: int = 10,
    dim: int = 5,
    horizon: int = 10_000,
    n_policies: int = 16,
    delta: float = 0.05,
) -> AlgorithmTable:
    """The survey's table of algorithms with the agents beyond it and the rankers, as ``text``, ``markdown``, ``latex``
    or ``json``.

    With assumptions (see ``verdicts``) it has only the agents that fit, the best first; ``verdicts`` of the table has
    the reason for every agent, which the text format prints.

    >>> print(table("markdown").splitlines()[2])
    | Exp3 |  | O(sqrt(T K ln K)) | no | no | yes | yes |
    >>> table(adversarial=True, high_probability=True).rows[0].agent
    'Exp4P'
    """
    found = verdicts(
        adversarial=adversarial, linear=linear, smooth=smooth, horizon_known=horizon_known,
        infinite_policies=infinite_policies, high_probability=high_probability, n_arms=n_arms, dim=dim,
        horizon=horizon, n_policies=n_policies, delta=delta,
    )  # fmt: skip
    if not found.assumptions:
        return formatted(format, tuple(row_of(name) for name in [*agents(), *rankers()]))
    short = formatted(format, tuple(row_of(verdict.agent) for verdict in found.stay))
    return AlgorithmTable(str(found) if format == "text" else short, short.rows, found)


def _room(agent: type[Agent]) -> str:
    return agent.__module__.split(".")[2]  # armwise.agents.ROOM


def _verdict(name: str, agent: type[Agent], assumed: dict[str, bool], sizes: dict[str, Any]) -> Verdict:
    against = _objections(agent, assumed)
    reason = f"goes: {' and '.join(against)}." if against else f"stays: {_merits(agent, assumed)}."
    theory = agent.theory
    call = (assumed.get("linear") and theory.call_if_linear) or theory.call
    return Verdict(name, not against, reason, call.format(**sizes), _bound(name, theory, sizes))


def _objections(agent: type[Agent], assumed: dict[str, bool]) -> list[str]:
    theory, against = agent.theory, []
    if assumed.get("adversarial") and not theory.adversarial:
        against.append("its bound needs rewards drawn from fixed distributions, and an adversary may choose yours")
    if assumed.get("linear") is False and _room(agent) == "linear":
        against.append(f"it assumes {theory.assumes}")
    if assumed.get("smooth") is False and _room(agent) == "kernel":
        against.append(f"it assumes {theory.assumes}")
    if assumed.get("horizon_known") is False and theory.needs_horizon:
        against.append("its bound needs the number of rounds in advance (Doubling restarts it at 1, 2, 4, ...)")
    if assumed.get("infinite_policies") and not theory.infinite_policies:
        against.append("its bound grows with the number of policies (or contexts), and your class is infinite")
    if assumed.get("high_probability") and not theory.high_probability:
        against.append("its bound holds in expectation only, or none is proved")
    return against


def _merits(agent: type[Agent], assumed: dict[str, bool]) -> str:
    theory = agent.theory
    text = f"it competes with {theory.comparator}, regret {theory.regret}, assuming {theory.assumes}"
    if assumed.get("adversarial") is False and theory.adversarial:
        text += "; it guards against adversaries that you do not have"
    if assumed.get("linear") and _room(agent) not in ("linear", "kernel"):
        text += "; it does not use that rewards are linear"
    return text


def _rank(agent: type[Agent], assumed: dict[str, bool]) -> tuple[bool, bool, bool, bool, float]:
    """Agents that use the assumptions come first, then those with a bound, then the slower-growing bounds."""
    theory = agent.theory
    unused = any(
        assumed.get(name) and _room(agent) != room for name, room in (("linear", "linear"), ("smooth", "kernel"))
    )
    wary = assumed.get("adversarial") is False and theory.adversarial
    unproved = theory.regret_bound is None
    return unused, wary, unproved, not theory.high_probability, theory.exponent


def _bound(name: str, theory: Theory, sizes: dict[str, Any]) -> float | None:
    if name in _ONE_MODEL_EACH:
        sizes = sizes | {"d": sizes["K"] * sizes["d"]}
    if theory.regret_bound is None or theory.regret_bound.__name__ in _OWN_LETTERS:
        return None
    letters = inspect.signature(theory.regret_bound).parameters.values()
    if any(
        letter.kind is letter.VAR_KEYWORD or (letter.default is letter.empty and letter.name not in sizes)
        for letter in letters
    ):
        return None
    return float(theory.regret_bound(**{letter.name: sizes[letter.name] for letter in letters if letter.name in sizes}))

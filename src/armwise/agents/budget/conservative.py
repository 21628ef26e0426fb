"""Conservative: at every moment at least (1 - alpha) of a baseline's reward.

Kazerouni, Ghavamzadeh, Abbasi-Yadkori, Van Roy 2017 (linear rewards); Wu, Shariff, Lattimore, Szepesvari 2016 (arms).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armwise.agents.budget.accounts import offered
from armwise.agents.budget.means import BoundedMeans
from armwise.agents.wrappers.transparent import RowsWrapper
from armwise.agents.wrappers.wrapper import expect_agent, teach
from armwise.core.agent import Agent, Choice, Floats, Seed, Theory, count, fraction, positive
from armwise.core.capabilities.counting import choosing_changes
from armwise.core.inputs import TakesDim
from armwise.models.ridge import Ridge
from armwise.native.choice import draw
from armwise.policies.distributions import distribution

_LINEAR = ("nothing", "features", "shared")
_INSTEAD = {  # of an agent that sees no features
    "key": "make one promise per context, PerContext(Conservative(...))",
    "advice": "give it its experts, Conservative(Advised(...))",
}


class Conservative(RowsWrapper, TakesDim):
    """Take the agent's arm only where that keeps the promise even under the worst model that the rewards allow.

    With x_s the features of the arm played in round s and y_s those of the baseline's arm, the promise
    sum_s x_s.theta >= (1 - alpha) sum_s y_s.theta is one linear inequality in theta. The agent's arm is played if
    w.theta_hat - beta ||w||_{A^-1} >= 0 for w = sum_{s<t} x_s + x_t(arm) - (1 - alpha) sum_{s<=t} y_s, the baseline's
    arm otherwise: the baseline's own reward need not be known. With probability 1 - delta the promise then holds at
    every moment, for expected rewards in [0, 1] that are linear in the features; one model per arm (with a constant)
    over a shared context. Where nothing is seen and rewards lie in [0, 1] nothing else is assumed: the worst model has
    the means of the arms at those ends of their bounds (``BoundedMeans``) that hurt.

    The bounds are the wrapper's own: the agent is any that sees nothing, features or a shared context, whatever it
    assumes of rewards itself.

    ``baseline`` is an arm, or a policy (any function of a context to an arm or a distribution). ``noise`` is the
    sub-Gaussian constant of the rewards, ``norm`` bounds ||theta||. Probabilities are exact: the mass of the arms that
    are refused goes to the baseline.

    >>> import armwise as aw
    >>> agent = Conservative(aw.UCB1(n_arms=2, seed=1), baseline=0, alpha=0.1, seed=1)
    >>> agent.choose(), agent.baseline_share
    (Choice(arm=0, probability=1.0, note=[True, None]), 1.0)
    """

    theory = Theory(
        section="beyond the survey",
        regret="the agent's own, plus O~(d^2 / (alpha r_b)) of order for the baseline's rounds",
        comparator="what the agent inside competes with; reward >= (1 - alpha) of the baseline's at every moment",
        assumes="expected rewards in [0, 1], linear in the features; sub-Gaussian noise",
        reference="Kazerouni, Ghavamzadeh, Abbasi-Yadkori, Van Roy 2017; Wu, Shariff, Lattimore, Szepesvari 2016",
        high_probability=True,
        call="aw.Conservative(aw.UCB1(n_arms={K}), baseline=0, alpha=0.1, delta={delta})",
    )
    _learnt = ("_model", "_means", "_balance", "_n_chosen", "_n_baseline", "dim")

    def __init__(
        self,
        agent: Agent,
        baseline: Any,
        alpha: float,
        *,
        delta: float = 0.05,
        noise: float = 0.5,
        norm: float = 1.0,
        lam: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(expect_agent("agent", agent), seed=seed)
        self.agent = agent
        self._wrap(agent)
        if agent.sees not in _LINEAR:
            raise ValueError(
                f"agent must see nothing, features or a shared context, in which rewards are linear; "
                f"{type(agent).__name__} sees {agent.sees!r}: {_INSTEAD[agent.sees]}"
            )
        if agent.sees == "shared" and agent.n_arms is None:
            raise ValueError(
                f"agent must have been made with n_arms, since each arm has a model here, got {agent!r:.80}"
            )
        if isinstance(baseline, (int, np.integer)) and not isinstance(baseline, bool):
            baseline = count("baseline", baseline, least=0)
            if agent.n_arms is not None and baseline >= agent.n_arms:
                raise ValueError(f"baseline is {baseline}, but the arms are 0 to {agent.n_arms - 1}")
        elif not callable(baseline):
            raise ValueError(f"baseline must be an arm or a policy, got {baseline!r:.80}")
        self.baseline = baseline
        self.alpha, self.delta = fraction("alpha", alpha, one=True), fraction("delta", delta)
        self.noise, self.norm, self.lam = positive("noise", noise), positive("norm", norm), positive("lam", lam)
        self.choosing_changes = True
        self._n_chosen = self._n_baseline = 0
        self._begin(agent.dim or 1)

    def _begin(self, dim: int) -> None:
        width = {"nothing": 1, "features": dim, "shared": dim + 1}[self.sees]
        models = 1 if self.sees == "features" or self.n_arms is None else self.n_arms
        self._model = Ridge(width, self.lam, models)
        bounded = self.sees == "nothing" and self.reward_range == (0.0, 1.0)
        self._means = BoundedMeans(models, self.delta) if bounded else None
        self._balance = np.zeros((models, width))  # sum of x_s - (1 - alpha) y_s, per model

    def _take_dim(self, dim: int) -> None:
        self.dim = dim
        self._begin(dim)

    @property
    def baseline_share(self) -> float:
        """The share of decisions that were left to the baseline.

        >>> import armwise as aw
        >>> Conservative(aw.UCB1(n_arms=2), baseline=0, alpha=0.1).baseline_share
        0.0
        """
        return self._n_baseline / max(self._n_chosen, 1)

    def _rows(self, context: Any) -> Floats:
        """(K, models, d): the features of each arm in the coordinates of the balance."""
        models, width = self._balance.shape
        if self.sees == "features":
            return np.asarray(context[:, None, :])
        x = np.ones(1) if context is None else np.append(context, 1.0)
        rows = np.zeros((models, models, width))
        rows[np.arange(models), np.arange(models)] = x
        return rows

    def _baseline(self, context: Any, n_arms: int) -> Floats:
        if isinstance(self.baseline, int):
            p = np.zeros(n_arms)
            p[offered("baseline", self.baseline, n_arms)] = 1.0
            return p
        return distribution(self.baseline, context, n_arms)

    def _radius(self, model: int) -> float:
        """beta of the confidence ellipsoid (Abbasi-Yadkori et al. 2011), delta shared among the models."""
        determinant = self._model.log_det(model) - self._model.dim * math.log(self.lam)
        share = self.delta / self._model.n_models
        return self.noise * math.sqrt(max(determinant, 0.0) - 2.0 * math.log(share)) + math.sqrt(self.lam) * self.norm

    def _safe(self, rows: Floats, base: Floats) -> Any:
        """Return whether playing each arm keeps the promise under every model in the confidence set."""
        target = self._balance - (1.0 - self.alpha) * np.einsum("k,kmd->md", base, rows)
        if self._means is not None:
            w = target[:, 0] + rows[:, :, 0]
            return np.where(w > 0.0, w * self._means.low, w * self._means.high).sum(axis=1) >= 0.0
        worst = np.zeros(len(rows))
        for m in range(self._model.n_models):
            w = target[m] + rows[:, m]
            means, widths = self._model.estimate(np.ascontiguousarray(w), m)
            worst += means - self._radius(m) * widths
        return worst >= 0.0

    def _mixed(self, own: Floats, base: Floats, safe: Any) -> Floats:
        taken = np.where(safe, own, 0.0)
        return np.asarray(taken + (1.0 - taken.sum()) * base) if not safe.all() else own

    def _parts(self, context: Any) -> tuple[Floats, Floats, Any]:
        rows = self._rows(context)
        base = self._baseline(context, len(rows))
        return rows, base, self._safe(rows, base)

    def _probabilities(self, context: Any) -> Floats:
        _, base, safe = self._parts(context)
        return self._mixed(self.agent._probabilities(self._for_inner(context)), base, safe)

    def _choose(self, context: Any) -> Choice:
        rows, base, safe = self._parts(context)
        inside = self._for_inner(context)
        every = self.agent._probabilities(inside)  # before the agent's own draw moves its stream on
        own = self.agent._choose(inside)
        arm, refused = own.arm, not safe[own.arm]
        if refused:
            arm = draw(base, self._rng.random())
        p = None if own.probability is None else float(self._mixed(every, base, safe)[arm])
        self._account(rows, base, arm, refused)
        return Choice(arm, p, [bool(refused), own.note])

    def _account(self, rows: Floats, base: Floats, arm: int, refused: bool) -> None:
        # A baseline that draws its arm is compared with itself by what it does on average.
        played = np.einsum("k,kmd->md", base, rows) if refused else rows[arm]
        self._balance = self._balance + played - (1.0 - self.alpha) * np.einsum("k,kmd->md", base, rows)
        self._n_chosen += 1
        self._n_baseline += int(refused)

    def record_choice(self, context: Any, choice: Choice) -> None:
        rows, base, safe = self._parts(context)
        # Journals from before choices said who made them leave a guess: that of an arm which was not safe.
        refused = base[choice.arm] > 0.0 and not safe[choice.arm] if choice.note is None else choice.note[0]
        self._account(rows, base, choice.arm, bool(refused))
        if choosing_changes(self.agent):
            self.agent.record_choice(self._for_inner(context), _inside(choice))

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        rows = self._rows(context)[choice.arm]
        model = 0 if self.sees == "features" else choice.arm
        if self._means is not None:
            self._means.add(choice.arm, reward)
        else:
            self._model.update(rows[model], reward, model)
        teach(self.agent, self._for_inner(context), _inside(choice), reward)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        note = choice.note
        if note is not None and not (isinstance(note, (list, tuple)) and len(note) == 2 and type(note[0]) is bool):
            raise ValueError(f"choice.note must be [refused, note] as choose wrote it, got {note!r:.80}")
        super()._check_note(_inside(choice), n_arms)

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        return self.agent._estimates(self._for_inner(context))


def _inside(choice: Choice) -> Choice:
    """The choice as the agent inside made it."""
    return choice._replace(note=None if choice.note is None else choice.note[1])

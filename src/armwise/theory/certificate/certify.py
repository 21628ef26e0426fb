"""``aw.certificate``: an upper bound on regret, computed from the rounds that were played."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count, fraction, positive
from armwise.theory.certificate import lack_of_fit as lack_of_fit
from armwise.theory.certificate.confidence_sets import ConfidenceSet, GeneralisedSet, KernelSet, PerArmSet, SharedSet
from armwise.theory.certificate.links import LOGISTIC, Link
from armwise.theory.certificate.played_rounds import Rounds, RoundsBlock
from armwise.theory.certificate.statement import Certificate, Fit, RejectedCertificateWarning

_PRIOR_ROUNDS = 100.0  # where the deviation of the rewards' sum is tightest


def certificate(
    contexts: Any,
    arms: Any = None,
    rewards: Any = None,
    *,
    norm: float | None = None,
    noise: float | None = None,
    kernel: Any = None,
    drawn: bool = False,
    link: str | Link | None = None,
    n_arms: int | None = None,
    delta: float = 0.05,
    lam: float | None = None,
    ceiling: float | None = None,
    at: Sequence[int] | None = None,
    test: bool = True,
) -> Certificate:
    """Bound the regret of played rounds with probability 1 - delta, however the arms were chosen.

    The rounds are arrays (``contexts`` (n, K, d): one parameter for all arms; (n, d): one for each of ``n_arms``; the
    ``arms`` that were played and their ``rewards``), an ``offline.Log``, or ``Rounds``; they are read in blocks. Regret
    is against the best arm of each round, in expected reward. The assumption on the rewards is one of:

    * linear (the default): E[r] = x . theta, ||theta|| <= ``norm`` (each arm's, if each has one);
    * ``link="logistic"``: clicks with P(r = 1) = 1 / (1 + exp(-x . theta)); or any ``Link`` with bounds on its slope;
    * ``kernel=``: E[r] = f(x), of norm at most ``norm`` in the kernel's space; or ``drawn=True``: f is a draw from the
      Gaussian process.

    The noise is sub-Gaussian with constant ``noise`` (rewards in [0, 1]: 1/2, the default if all of them are). With
    ``ceiling``, no arm's expected reward is above it: then regret is also at most n ceiling less the rewards, up to
    their noise. ``at`` lists fewer rounds to certify too; ``test=True`` runs the lack-of-fit test of the assumption:
    where it rejects, ``regret`` is infinite and a ``RejectedCertificateWarning`` gives the reason.

    >>> import armwise as aw
    >>> world = aw.environments.Linear(n_arms=5, dim=5, noise=0.1)
    >>> block = next(world.blocks(2_000, seed=1))
    >>> played = aw.LinUCB(5, alpha=0.2, seed=1).play(block.view("features"), block.rewards)
    >>> proved = aw.certificate(block.view("features"), played.arms, played.rewards, noise=0.1, norm=1.0)
    >>> regret = (block.expected.max(axis=1) - block.expected[np.arange(2_000), played.arms]).sum()
    >>> bool(regret < proved.regret < 100), proved.fit.rejected
    (True, False)
    """
    rounds = _rounds(contexts, arms, rewards, n_arms)
    delta = fraction("delta", delta)
    noise = _noise(rounds, noise, link)
    if not drawn or kernel is None:
        if norm is None:
            raise ValueError("norm must be given: the largest ||theta|| (or norm of f) that you hold possible")
        norm = positive("norm", norm)
    elif norm is not None:
        raise ValueError("norm is for a function of bounded norm; with drawn=True the prior is the kernel's own")
    make, assumes, examine = _class(rounds, norm, noise, kernel, drawn, link, lam)
    n = len(rounds)
    looks = sorted({count("at", T) for T in at or ()} | {n})
    if looks[-1] > n:
        raise ValueError(f"at must lie in 1 to {n}, the rounds there are, got {looks[-1]}")
    share = delta if ceiling is None else delta / 2.0
    curve = np.empty(len(looks))
    for i, T in enumerate(looks):
        found = make(T, share, len(looks) - i)
        curve[i] = sum(float(found.regret(block).sum()) for block in rounds.blocks(T))
    if ceiling is not None:
        curve = np.minimum(curve, _below_ceiling(rounds, looks, float(ceiling), noise, delta / 2.0))
        assumes += f" and no arm's expected reward is above {float(ceiling):g}"
    curve = np.minimum.accumulate(curve[::-1])[::-1]  # regret only grows, and all hold at once
    fitted = examine(n) if test else None
    claimed = float(curve[-1])
    if fitted is not None and fitted.rejected:
        warnings.warn(RejectedCertificateWarning(f"nothing is proved: {fitted}"), stacklevel=2)
        curve = np.full(len(looks), np.inf)
    return Certificate(float(curve[-1]), delta, assumes, fitted, np.array(looks, np.int64), curve, n, claimed)


Maker = Callable[[int, float, int], ConfidenceSet]


def _class(
    rounds: Rounds,
    norm: float | None,
    noise: float,
    kernel: Any,
    drawn: bool,
    link: str | Link | None,
    lam: float | None,
) -> tuple[Maker, str, Callable[[int], Fit]]:
    """The confidence set after T rounds, the assumption in words, and its test."""
    X = next(rounds.blocks(1)).X
    d, shared = X.shape[-1], X.ndim == 3
    scatter = f"with noise {noise:g}"
    if kernel is not None:
        if link is not None or not shared:
            raise ValueError("kernel is for contexts of shape (n, K, d), without a link")
        if not callable(kernel):
            raise ValueError(f"kernel must be one of aw.kernels, or any k(X, Z), got {kernel!r:.80}")
        k = kernel
        words = "the expected rewards are a draw from this Gaussian process" if drawn else (
            f"the expected rewards are a function of norm at most {norm:g} in this kernel's space"
        )  # fmt: skip
        return (
            lambda T, delta, looks: KernelSet(rounds, T, k, noise, norm, delta, looks),
            f"{words}, {scatter}",
            lambda T: lack_of_fit.kernel(rounds, T, k, noise, norm),
        )
    assert norm is not None
    S = norm
    if link is not None:
        chosen = LOGISTIC if link == "logistic" else link
        if not isinstance(chosen, Link):
            raise ValueError(f'link must be "logistic" or a Link, got {link!r:.80}')
        wide = rounds if shared else _features_by_arm(rounds)
        S = norm if shared else norm * math.sqrt(rounds.n_arms)
        D = d if shared else d * rounds.n_arms
        ridge = positive("lam", lam) if lam is not None else D / S**2 if chosen is LOGISTIC else (noise / S) ** 2 * D
        if chosen is LOGISTIC:
            words = f"rewards are clicks whose log-odds are linear in these features, ||theta|| <= {norm:g}"
            return (
                lambda T, delta, looks: GeneralisedSet(wide, T, chosen, noise, S, ridge, delta),
                words,
                lambda T: lack_of_fit.logistic(wide, T, S),
            )
        return (
            lambda T, delta, looks: GeneralisedSet(wide, T, chosen, noise, S, ridge, delta),
            f"rewards are this link's mean of something linear in these features, ||theta|| <= {norm:g}, {scatter}",
            lambda T: lack_of_fit.link(
                wide, T, chosen.mean, GeneralisedSet(wide, T, chosen, noise, S, ridge, 0.05).theta, noise
            ),
        )
    ridge = positive("lam", lam) if lam is not None else max((noise / norm) ** 2 * d, 1e-9)
    kind = SharedSet if shared else PerArmSet
    each = "" if shared else ", with a theta for each arm"
    return (
        lambda T, delta, looks: kind(rounds, T, noise, S, ridge, delta),
        f"rewards are linear in these features{each}, ||theta|| <= {norm:g}, {scatter}",
        lambda T: lack_of_fit.linear(rounds, T, noise, S),
    )


def _rounds(contexts: Any, arms: Any, rewards: Any, n_arms: int | None) -> Rounds:
    if arms is not None and rewards is not None:
        return Rounds.of_arrays(contexts, arms, rewards, n_arms)
    if isinstance(contexts, Rounds) or hasattr(contexts, "batches"):
        rounds = contexts if isinstance(contexts, Rounds) else Rounds.of_log(contexts)
        if not len(rounds):
            raise ValueError("there are no rounds to certify")
        return rounds
    raise ValueError("give contexts, arms and rewards, or a Log, or Rounds")


def _noise(rounds: Rounds, noise: float | None, link: str | Link | None) -> float:
    if noise is not None:
        return positive("noise", noise)
    low, high = math.inf, -math.inf
    for block in rounds.blocks():
        low, high = min(low, float(block.rewards.min())), max(high, float(block.rewards.max()))
    if low < 0.0 or high > 1.0:
        raise ValueError(f"noise must be given where rewards leave [0, 1]: they go from {low:g} to {high:g}")
    return 0.5  # Hoeffding: a reward in [0, 1] is sub-Gaussian with this constant


def _below_ceiling(rounds: Rounds, looks: list[int], ceiling: float, noise: float, delta: float) -> Floats:
    """T ceiling minus the rewards, plus the largest deviation of their sum from its expectation, for all T at once."""
    found = []
    for T in looks:
        total, V = sum(float(block.rewards.sum()) for block in rounds.blocks(T)), T + _PRIOR_ROUNDS
        deviation = noise * math.sqrt(V * (math.log(V / _PRIOR_ROUNDS) + 2.0 * math.log(1.0 / delta)))
        found.append(T * ceiling - total + deviation)
    return np.array(found)


def _features_by_arm(rounds: Rounds) -> Rounds:
    """One context for all arms as features: a block of coordinates for each arm."""
    K = rounds.n_arms

    def make() -> Iterator[RoundsBlock]:
        for block in rounds.blocks():
            n, d = block.X.shape
            X = np.zeros((n, K, K, d))
            X[:, np.arange(K), np.arange(K)] = block.X[:, None]
            yield RoundsBlock(X.reshape(n, K, K * d), block.arms, block.rewards, block.offered)

    return Rounds(make, len(rounds), K)

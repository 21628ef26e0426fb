"""armwise: contextual bandits from the paper to production.

>>> import numpy as np, armwise as aw
>>> agent = aw.LinUCB(dim=3, alpha=0.5, seed=7)
>>> X = np.eye(3)                       # one row of features for each arm
>>> choice = agent.choose(X)
>>> agent.learn(X, choice, reward=1.0)
>>> agent.choose(X).arm == choice.arm
True

Names are loaded from their rooms when first used, so that ``import armwise`` costs next to nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "agent": ("Agent", "Choice", "IndexAgent", "Played", "Theory"),
    "persist": ("LoadError", "load"),
    "reduction.exp3": ("Exp3",),
    "reduction.ucb1": ("UCB1",),
    "reduction.thompson": ("BetaThompson",),
    "reduction.epsilon_greedy": ("EpsilonGreedy",),
    "reduction.per_context": ("PerContext",),
    "reduction.policy_arms": ("PolicyArms",),
    "reduction.doubling": ("Doubling",),
    "reduction.explore": ("Explore",),
    "linear.linucb": ("LinUCB", "Ellipsoid"),
    "linear.sup_linucb": ("SupLinUCB",),
    "linear.linrel": ("LinREL", "SupLinREL"),
    "linear.cofine": ("CoFineUCB",),
    "linear.thompson": ("LinThompson", "ThompsonScale"),
    "linear.logistic": ("LogisticThompson",),
    "linear.spectral": ("SpectralUCB",),
    "kernel.gp_ucb": ("GPUCB", "CGPUCB", "FiniteArmsBeta", "AgnosticBeta"),
    "kernel.kernel_ucb": ("KernelUCB", "SupKernelUCB"),
    "policies.fixed": ("Constant", "Uniform", "Linear", "Stump", "Tree"),
    "oracle.finite": ("FinitePolicies",),
    "oracle.linear": ("LinearOracle",),
    "oracle.estimators": ("ClassifierOracle", "RegressorOracle"),
    "oracle.epoch_greedy": ("EpochGreedy",),
    "oracle.policy_elimination": ("PolicyElimination",),
    "oracle.randomized_ucb": ("RandomizedUCB",),
    "oracle.iltcb": ("ILoveToConBandits",),
    "oracle.online_cover": ("OnlineCover",),
    "oracle.squarecb": ("SquareCB",),
    "oracle.regcb": ("RegCB",),
    "experts.exp4": ("Exp4",),
    "experts.exp4p": ("Exp4P",),
    "experts.advised": ("Advised",),
    "experts.ve": ("VE",),
    "guide": ("table", "advise"),
    "racing": ("race",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted({*_HOME_OF, "bounds", "environments", "kernels", "offline", "policies"})


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f"armwise.{_HOME_OF[name]}"), name)
    elif name == "kernels":
        value = import_module("armwise.kernel.kernels")
    elif name in ("bounds", "environments", "offline", "policies"):
        value = import_module(f"armwise.{name}")
    else:
        raise AttributeError(f"module 'armwise' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]

"""armwise: contextual bandits from the paper to production.

>>> import numpy as np, armwise as aw
>>> agent = aw.LinUCB(dim=3, alpha=0.5, lam=1.0, seed=7)
>>> X = np.eye(3)                       # one row of features for each arm
>>> choice = agent.choose(X)
>>> agent.learn(X, choice, reward=1.0)
>>> agent.choose(X).arm == choice.arm
True

Names are loaded from their rooms when first used, so that ``import armwise`` costs next to nothing.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "agent": ("Agent", "IndexAgent", "Theory", "load"),
    "choices": ("Choice", "Choices", "Played"),
    "persist": ("LoadError",),
    "reduction.exp3": ("Exp3",),
    "reduction.ucb1": ("UCB1",),
    "reduction.thompson": ("BetaThompson",),
    "reduction.epsilon_greedy": ("EpsilonGreedy",),
    "reduction.per_context": ("PerContext",),
    "reduction.policy_arms": ("PolicyArms",),
    "reduction.doubling": ("Doubling",),
    "reduction.explore": ("Explore",),
    "reduction.balancing": ("D3RB", "ED2RB"),
    "reduction.corral": ("Corral",),
    "reduction.mapped": ("Mapped",),
    "auto.auto": ("Auto",),
    "linear.linucb": ("LinUCB", "Ellipsoid"),
    "linear.hybrid": ("HybridLinUCB",),
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
    "oracle.fastcb": ("FastCB",),
    "oracle.regcb": ("RegCB",),
    "experts.exp4": ("Exp4",),
    "experts.exp4p": ("Exp4P",),
    "experts.advised": ("Advised",),
    "experts.ve": ("VE",),
    "budget.lagrange": ("LagrangeCB",),
    "budget.lincbwk": ("LinCBwK",),
    "budget.hard_stop": ("HardStop",),
    "budget.pacing": ("Pacing",),
    "budget.conservative": ("Conservative",),
    "budget.optimum": ("budget_optimum",),
    "budget.accounts": ("BudgetSpent",),
    "certify": ("certificate",),
    "decider.answers": ("Decided", "Explanation", "Receipt", "UnknownDecision"),
    "decider.decider": ("Decider",),
    "decider.client": ("Client", "ServiceError"),
    "guide": ("table", "advise"),
    "offline.fit_log": ("fit_log",),
    "racing": ("race",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(
    {*_HOME_OF, "bounds", "environments", "features", "kernels", "offline", "policies", "racing", "testing"}
)


# Type checkers and editors read this list; at run time a name is imported when it is first asked for. A test holds the
# two together.
if TYPE_CHECKING:
    from armwise import bounds as bounds
    from armwise import environments as environments
    from armwise import features as features
    from armwise import offline as offline
    from armwise import policies as policies
    from armwise import racing as racing
    from armwise import testing as testing
    from armwise.agent import Agent as Agent
    from armwise.agent import IndexAgent as IndexAgent
    from armwise.agent import Theory as Theory
    from armwise.agent import load as load
    from armwise.auto.auto import Auto as Auto
    from armwise.budget.accounts import BudgetSpent as BudgetSpent
    from armwise.budget.conservative import Conservative as Conservative
    from armwise.budget.hard_stop import HardStop as HardStop
    from armwise.budget.lagrange import LagrangeCB as LagrangeCB
    from armwise.budget.lincbwk import LinCBwK as LinCBwK
    from armwise.budget.optimum import budget_optimum as budget_optimum
    from armwise.budget.pacing import Pacing as Pacing
    from armwise.certify import certificate as certificate
    from armwise.choices import Choice as Choice
    from armwise.choices import Choices as Choices
    from armwise.choices import Played as Played
    from armwise.decider.answers import Decided as Decided
    from armwise.decider.answers import Explanation as Explanation
    from armwise.decider.answers import Receipt as Receipt
    from armwise.decider.answers import UnknownDecision as UnknownDecision
    from armwise.decider.client import Client as Client
    from armwise.decider.client import ServiceError as ServiceError
    from armwise.decider.decider import Decider as Decider
    from armwise.experts.advised import Advised as Advised
    from armwise.experts.exp4 import Exp4 as Exp4
    from armwise.experts.exp4p import Exp4P as Exp4P
    from armwise.experts.ve import VE as VE
    from armwise.guide import advise as advise
    from armwise.guide import table as table
    from armwise.kernel import kernels as kernels
    from armwise.kernel.gp_ucb import CGPUCB as CGPUCB
    from armwise.kernel.gp_ucb import GPUCB as GPUCB
    from armwise.kernel.gp_ucb import AgnosticBeta as AgnosticBeta
    from armwise.kernel.gp_ucb import FiniteArmsBeta as FiniteArmsBeta
    from armwise.kernel.kernel_ucb import KernelUCB as KernelUCB
    from armwise.kernel.kernel_ucb import SupKernelUCB as SupKernelUCB
    from armwise.linear.cofine import CoFineUCB as CoFineUCB
    from armwise.linear.hybrid import HybridLinUCB as HybridLinUCB
    from armwise.linear.linrel import LinREL as LinREL
    from armwise.linear.linrel import SupLinREL as SupLinREL
    from armwise.linear.linucb import Ellipsoid as Ellipsoid
    from armwise.linear.linucb import LinUCB as LinUCB
    from armwise.linear.logistic import LogisticThompson as LogisticThompson
    from armwise.linear.spectral import SpectralUCB as SpectralUCB
    from armwise.linear.sup_linucb import SupLinUCB as SupLinUCB
    from armwise.linear.thompson import LinThompson as LinThompson
    from armwise.linear.thompson import ThompsonScale as ThompsonScale
    from armwise.offline.fit_log import fit_log as fit_log
    from armwise.oracle.epoch_greedy import EpochGreedy as EpochGreedy
    from armwise.oracle.estimators import ClassifierOracle as ClassifierOracle
    from armwise.oracle.estimators import RegressorOracle as RegressorOracle
    from armwise.oracle.fastcb import FastCB as FastCB
    from armwise.oracle.finite import FinitePolicies as FinitePolicies
    from armwise.oracle.iltcb import ILoveToConBandits as ILoveToConBandits
    from armwise.oracle.linear import LinearOracle as LinearOracle
    from armwise.oracle.online_cover import OnlineCover as OnlineCover
    from armwise.oracle.policy_elimination import PolicyElimination as PolicyElimination
    from armwise.oracle.randomized_ucb import RandomizedUCB as RandomizedUCB
    from armwise.oracle.regcb import RegCB as RegCB
    from armwise.oracle.squarecb import SquareCB as SquareCB
    from armwise.persist import LoadError as LoadError
    from armwise.policies.fixed import Constant as Constant
    from armwise.policies.fixed import Linear as Linear
    from armwise.policies.fixed import Stump as Stump
    from armwise.policies.fixed import Tree as Tree
    from armwise.policies.fixed import Uniform as Uniform
    from armwise.racing import race as race
    from armwise.reduction.balancing import D3RB as D3RB
    from armwise.reduction.balancing import ED2RB as ED2RB
    from armwise.reduction.corral import Corral as Corral
    from armwise.reduction.doubling import Doubling as Doubling
    from armwise.reduction.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
    from armwise.reduction.exp3 import Exp3 as Exp3
    from armwise.reduction.explore import Explore as Explore
    from armwise.reduction.mapped import Mapped as Mapped
    from armwise.reduction.per_context import PerContext as PerContext
    from armwise.reduction.policy_arms import PolicyArms as PolicyArms
    from armwise.reduction.thompson import BetaThompson as BetaThompson
    from armwise.reduction.ucb1 import UCB1 as UCB1
else:

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        from armwise.extras import needs

        if name in _HOME_OF:
            with needs():
                value = getattr(import_module(f"armwise.{_HOME_OF[name]}"), name)
        elif name == "kernels":
            value = import_module("armwise.kernel.kernels")
        elif name in ("bounds", "environments", "features", "offline", "policies", "racing", "testing"):
            value = import_module(f"armwise.{name}")
        else:
            raise AttributeError(f"module 'armwise' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]

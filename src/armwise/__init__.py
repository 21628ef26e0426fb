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
    "core.agent": ("Agent", "IndexAgent", "Theory", "load"),
    "core.choices": ("Choice", "Choices", "Played"),
    "core.saving": ("LoadError",),
    "agents.arms.exp3": ("Exp3",),
    "agents.arms.ucb1": ("UCB1",),
    "agents.arms.beta_thompson": ("BetaThompson",),
    "agents.arms.epsilon_greedy": ("EpsilonGreedy",),
    "agents.wrappers.per_context": ("PerContext",),
    "agents.wrappers.policy_arms": ("PolicyArms",),
    "agents.wrappers.doubling": ("Doubling",),
    "agents.wrappers.explore": ("Explore",),
    "agents.ensembles.balancing": ("D3RB", "ED2RB"),
    "agents.ensembles.corral": ("Corral",),
    "agents.wrappers.mapped": ("Mapped",),
    "agents.auto.auto": ("Auto",),
    "agents.linear.linucb": ("LinUCB", "Ellipsoid"),
    "agents.linear.hybrid": ("HybridLinUCB",),
    "agents.linear.sup_linucb": ("SupLinUCB",),
    "agents.linear.linrel": ("LinREL", "SupLinREL"),
    "agents.linear.cofine": ("CoFineUCB",),
    "agents.linear.lin_thompson": ("LinThompson", "ThompsonScale"),
    "agents.linear.logistic": ("LogisticThompson",),
    "agents.linear.spectral": ("SpectralUCB",),
    "agents.kernel.gp_ucb": ("GPUCB", "CGPUCB", "FiniteArmsBeta", "AgnosticBeta"),
    "agents.kernel.kernel_ucb": ("KernelUCB", "SupKernelUCB"),
    "policies.fixed": ("Constant", "Uniform", "Linear", "Stump", "Tree"),
    "agents.oracle.oracles.finite_policies": ("FinitePolicies",),
    "agents.oracle.oracles.linear_oracle": ("LinearOracle",),
    "agents.oracle.oracles.sklearn_oracles": ("ClassifierOracle", "RegressorOracle"),
    "agents.oracle.epoch_greedy": ("EpochGreedy",),
    "agents.oracle.policy_elimination": ("PolicyElimination",),
    "agents.oracle.randomized_ucb": ("RandomizedUCB",),
    "agents.oracle.iltcb": ("ILoveToConBandits",),
    "agents.oracle.online_cover": ("OnlineCover",),
    "agents.oracle.squarecb": ("SquareCB",),
    "agents.oracle.fastcb": ("FastCB",),
    "agents.oracle.regcb": ("RegCB",),
    "agents.experts.exp4": ("Exp4",),
    "agents.experts.exp4p": ("Exp4P",),
    "agents.experts.advised": ("Advised",),
    "agents.experts.ve": ("VE",),
    "agents.budget.lagrange": ("LagrangeCB",),
    "agents.budget.lincbwk": ("LinCBwK",),
    "agents.budget.hard_stop": ("HardStop",),
    "agents.budget.pacing": ("Pacing",),
    "agents.budget.conservative": ("Conservative",),
    "agents.budget.optimum": ("budget_optimum",),
    "agents.budget.accounts": ("BudgetSpent",),
    "theory.certificate": ("certificate",),
    "service.decider.answers": ("Decided", "Explanation", "Receipt", "UnknownDecision"),
    "service.decider.decider": ("Decider",),
    "service.decider.client": ("Client", "ServiceError"),
    "theory.advice": ("advise",),
    "theory.assumption_filter": ("table",),
    "offline.learning.fit_log": ("fit_log",),
    "racing": ("race",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

_MODULES = {
    "bounds": "armwise.theory.bounds",
    "kernels": "armwise.models.kernels",
    **{room: f"armwise.{room}" for room in ("environments", "features", "offline", "policies", "racing", "testing")},
}

__all__ = sorted({*_HOME_OF, *_MODULES})


# Type checkers and editors read this list; at run time a name is imported when it is first asked for. A test holds the
# two together.
if TYPE_CHECKING:
    from armwise import environments as environments
    from armwise import features as features
    from armwise import offline as offline
    from armwise import policies as policies
    from armwise import racing as racing
    from armwise import testing as testing
    from armwise.agents.arms.beta_thompson import BetaThompson as BetaThompson
    from armwise.agents.arms.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
    from armwise.agents.arms.exp3 import Exp3 as Exp3
    from armwise.agents.arms.ucb1 import UCB1 as UCB1
    from armwise.agents.auto.auto import Auto as Auto
    from armwise.agents.budget.accounts import BudgetSpent as BudgetSpent
    from armwise.agents.budget.conservative import Conservative as Conservative
    from armwise.agents.budget.hard_stop import HardStop as HardStop
    from armwise.agents.budget.lagrange import LagrangeCB as LagrangeCB
    from armwise.agents.budget.lincbwk import LinCBwK as LinCBwK
    from armwise.agents.budget.optimum import budget_optimum as budget_optimum
    from armwise.agents.budget.pacing import Pacing as Pacing
    from armwise.agents.ensembles.balancing import D3RB as D3RB
    from armwise.agents.ensembles.balancing import ED2RB as ED2RB
    from armwise.agents.ensembles.corral import Corral as Corral
    from armwise.agents.experts.advised import Advised as Advised
    from armwise.agents.experts.exp4 import Exp4 as Exp4
    from armwise.agents.experts.exp4p import Exp4P as Exp4P
    from armwise.agents.experts.ve import VE as VE
    from armwise.agents.kernel.gp_ucb import CGPUCB as CGPUCB
    from armwise.agents.kernel.gp_ucb import GPUCB as GPUCB
    from armwise.agents.kernel.gp_ucb import AgnosticBeta as AgnosticBeta
    from armwise.agents.kernel.gp_ucb import FiniteArmsBeta as FiniteArmsBeta
    from armwise.agents.kernel.kernel_ucb import KernelUCB as KernelUCB
    from armwise.agents.kernel.kernel_ucb import SupKernelUCB as SupKernelUCB
    from armwise.agents.linear.cofine import CoFineUCB as CoFineUCB
    from armwise.agents.linear.hybrid import HybridLinUCB as HybridLinUCB
    from armwise.agents.linear.lin_thompson import LinThompson as LinThompson
    from armwise.agents.linear.lin_thompson import ThompsonScale as ThompsonScale
    from armwise.agents.linear.linrel import LinREL as LinREL
    from armwise.agents.linear.linrel import SupLinREL as SupLinREL
    from armwise.agents.linear.linucb import Ellipsoid as Ellipsoid
    from armwise.agents.linear.linucb import LinUCB as LinUCB
    from armwise.agents.linear.logistic import LogisticThompson as LogisticThompson
    from armwise.agents.linear.spectral import SpectralUCB as SpectralUCB
    from armwise.agents.linear.sup_linucb import SupLinUCB as SupLinUCB
    from armwise.agents.oracle.epoch_greedy import EpochGreedy as EpochGreedy
    from armwise.agents.oracle.fastcb import FastCB as FastCB
    from armwise.agents.oracle.iltcb import ILoveToConBandits as ILoveToConBandits
    from armwise.agents.oracle.online_cover import OnlineCover as OnlineCover
    from armwise.agents.oracle.oracles.finite_policies import FinitePolicies as FinitePolicies
    from armwise.agents.oracle.oracles.linear_oracle import LinearOracle as LinearOracle
    from armwise.agents.oracle.oracles.sklearn_oracles import ClassifierOracle as ClassifierOracle
    from armwise.agents.oracle.oracles.sklearn_oracles import RegressorOracle as RegressorOracle
    from armwise.agents.oracle.policy_elimination import PolicyElimination as PolicyElimination
    from armwise.agents.oracle.randomized_ucb import RandomizedUCB as RandomizedUCB
    from armwise.agents.oracle.regcb import RegCB as RegCB
    from armwise.agents.oracle.squarecb import SquareCB as SquareCB
    from armwise.agents.wrappers.doubling import Doubling as Doubling
    from armwise.agents.wrappers.explore import Explore as Explore
    from armwise.agents.wrappers.mapped import Mapped as Mapped
    from armwise.agents.wrappers.per_context import PerContext as PerContext
    from armwise.agents.wrappers.policy_arms import PolicyArms as PolicyArms
    from armwise.core.agent import Agent as Agent
    from armwise.core.agent import IndexAgent as IndexAgent
    from armwise.core.agent import Theory as Theory
    from armwise.core.agent import load as load
    from armwise.core.choices import Choice as Choice
    from armwise.core.choices import Choices as Choices
    from armwise.core.choices import Played as Played
    from armwise.core.saving import LoadError as LoadError
    from armwise.models import kernels as kernels
    from armwise.offline.learning.fit_log import fit_log as fit_log
    from armwise.policies.fixed import Constant as Constant
    from armwise.policies.fixed import Linear as Linear
    from armwise.policies.fixed import Stump as Stump
    from armwise.policies.fixed import Tree as Tree
    from armwise.policies.fixed import Uniform as Uniform
    from armwise.racing import race as race
    from armwise.service.decider.answers import Decided as Decided
    from armwise.service.decider.answers import Explanation as Explanation
    from armwise.service.decider.answers import Receipt as Receipt
    from armwise.service.decider.answers import UnknownDecision as UnknownDecision
    from armwise.service.decider.client import Client as Client
    from armwise.service.decider.client import ServiceError as ServiceError
    from armwise.service.decider.decider import Decider as Decider
    from armwise.theory import bounds as bounds
    from armwise.theory.advice import advise as advise
    from armwise.theory.assumption_filter import table as table
    from armwise.theory.certificate import certificate as certificate
else:

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        from armwise.core.extras import needs

        if name in _HOME_OF:
            with needs():
                value = getattr(import_module(f"armwise.{_HOME_OF[name]}"), name)
        elif name in _MODULES:
            value = import_module(_MODULES[name])
        else:
            raise AttributeError(f"module 'armwise' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]

"""The public names, each with the module that it is imported from: at run time when it is first used.

Agents are in the order of the survey's sections.
"""

# ruff: isort: skip_file

from . import environments as environments
from . import export as export
from . import features as features
from . import offline as offline
from . import policies as policies
from . import racing as racing
from . import testing as testing
from armwise.models import kernels as kernels
from armwise.theory import bounds as bounds
from armwise.core.agent import Agent as Agent
from armwise.core.agent import IndexAgent as IndexAgent
from armwise.core.agent import Theory as Theory
from armwise.core.agent import load as load
from armwise.core.choices import Choice as Choice
from armwise.core.choices import Choices as Choices
from armwise.core.choices import Played as Played
from armwise.core.saving import LoadError as LoadError
from armwise.agents.arms.exp3 import Exp3 as Exp3
from armwise.agents.arms.ucb1 import UCB1 as UCB1
from armwise.agents.arms.beta_thompson import BetaThompson as BetaThompson
from armwise.agents.arms.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from armwise.agents.wrappers.per_context import PerContext as PerContext
from armwise.agents.wrappers.policy_arms import PolicyArms as PolicyArms
from armwise.agents.wrappers.doubling import Doubling as Doubling
from armwise.agents.wrappers.explore import Explore as Explore
from armwise.agents.ensembles.balancing import D3RB as D3RB
from armwise.agents.ensembles.balancing import ED2RB as ED2RB
from armwise.agents.ensembles.corral import Corral as Corral
from armwise.agents.wrappers.mapped import Mapped as Mapped
from armwise.agents.auto.auto import Auto as Auto
from armwise.agents.linear.linucb import LinUCB as LinUCB
from armwise.agents.linear.rand_ucb import RandUCB as RandUCB
from armwise.agents.linear.linucb import Ellipsoid as Ellipsoid
from armwise.agents.linear.hybrid import HybridLinUCB as HybridLinUCB
from armwise.agents.linear.staged.sup_linucb import SupLinUCB as SupLinUCB
from armwise.agents.linear.linrel import LinREL as LinREL
from armwise.agents.linear.staged.sup_linrel import SupLinREL as SupLinREL
from armwise.agents.linear.cofine import CoFineUCB as CoFineUCB
from armwise.agents.linear.lin_thompson import LinThompson as LinThompson
from armwise.agents.linear.lin_thompson import ThompsonScale as ThompsonScale
from armwise.agents.linear.logistic import LogisticThompson as LogisticThompson
from armwise.agents.linear.spectral import SpectralUCB as SpectralUCB
from armwise.agents.kernel.gp_ucb import GPUCB as GPUCB
from armwise.agents.kernel.gp_ucb import CGPUCB as CGPUCB
from armwise.agents.kernel.gp_ucb import FiniteArmsBeta as FiniteArmsBeta
from armwise.agents.kernel.gp_ucb import AgnosticBeta as AgnosticBeta
from armwise.agents.kernel.kernel_ucb import KernelUCB as KernelUCB
from armwise.agents.kernel.kernel_ucb import SupKernelUCB as SupKernelUCB
from armwise.policies.fixed import Constant as Constant
from armwise.policies.fixed import Uniform as Uniform
from armwise.policies.fixed import Linear as Linear
from armwise.policies.fixed import Stump as Stump
from armwise.policies.fixed import Tree as Tree
from armwise.agents.oracle.oracles.finite_policies import FinitePolicies as FinitePolicies
from armwise.agents.oracle.oracles.linear_oracle import LinearOracle as LinearOracle
from armwise.agents.oracle.oracles.sklearn_oracles import ClassifierOracle as ClassifierOracle
from armwise.agents.oracle.oracles.sklearn_oracles import RegressorOracle as RegressorOracle
from armwise.agents.oracle.epoch_greedy import EpochGreedy as EpochGreedy
from armwise.agents.oracle.policy_elimination import PolicyElimination as PolicyElimination
from armwise.agents.oracle.randomized_ucb import RandomizedUCB as RandomizedUCB
from armwise.agents.oracle.iltcb import ILoveToConBandits as ILoveToConBandits
from armwise.agents.oracle.online_cover import OnlineCover as OnlineCover
from armwise.agents.oracle.regression.squarecb import SquareCB as SquareCB
from armwise.agents.oracle.regression.fastcb import FastCB as FastCB
from armwise.agents.oracle.regression.regcb import RegCB as RegCB
from armwise.agents.experts.exp4 import Exp4 as Exp4
from armwise.agents.experts.exp4p import Exp4P as Exp4P
from armwise.agents.experts.advised import Advised as Advised
from armwise.agents.experts.ve import VE as VE
from armwise.agents.stopping.track_and_stop import TrackAndStop as TrackAndStop
from armwise.agents.stopping.top_two_thompson import TopTwoThompson as TopTwoThompson
from armwise.agents.stopping.lucb import LUCB as LUCB
from armwise.agents.stopping.successive_elimination import SuccessiveElimination as SuccessiveElimination
from armwise.agents.budget.lagrange import LagrangeCB as LagrangeCB
from armwise.agents.budget.lincbwk import LinCBwK as LinCBwK
from armwise.agents.budget.hard_stop import HardStop as HardStop
from armwise.agents.budget.pacing import Pacing as Pacing
from armwise.agents.budget.conservative import Conservative as Conservative
from armwise.agents.budget.optimum import budget_optimum as budget_optimum
from armwise.agents.budget.accounts import BudgetSpent as BudgetSpent
from armwise.agents.ranking.lists import Ranking as Ranking
from armwise.agents.ranking.ranker import Ranker as Ranker
from armwise.agents.ranking.slot_by_slot import SlotBySlot as SlotBySlot
from armwise.agents.ranking.cascade import CascadeUCB1 as CascadeUCB1
from armwise.agents.ranking.cascade import CascadeKLUCB as CascadeKLUCB
from armwise.agents.ranking.cascade_linear import CascadeLinUCB as CascadeLinUCB
from armwise.agents.ranking.cascade_linear import CascadeLinThompson as CascadeLinThompson
from armwise.agents.ranking.c2ucb import C2UCB as C2UCB
from armwise.agents.ranking.position_ucb import PositionUCB as PositionUCB
from armwise.agents.ranking.position_thompson import PositionThompson as PositionThompson
from armwise.agents.ranking.toprank import TopRank as TopRank
from armwise.theory.certificate import certificate as certificate
from armwise.service.decider.decided import Decided as Decided
from armwise.service.decider.decided import Explanation as Explanation
from armwise.service.decider.decided import Receipt as Receipt
from armwise.service.decider.decided import UnknownDecision as UnknownDecision
from armwise.service.decider.decider import Decider as Decider
from armwise.service.decider.client import Client as Client
from armwise.service.decider.client import ServiceError as ServiceError
from armwise.service.decider.experiment import Experiment as Experiment
from armwise.offline.experiments.traffic import Traffic as Traffic
from armwise.offline.experiments.traffic import traffic as traffic
from armwise.theory.advice import advise as advise
from armwise.theory.assumption_filter import table as table
from armwise.offline.learning.fit_log import fit_log as fit_log
from armwise.racing import race as race
from armwise.core.public_names import PublicNames

__version__: str
__all__: list[str]
_public: PublicNames

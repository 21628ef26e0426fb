"""Simulated worlds for races: contexts, rewards, and the expected reward of every arm.

It may import agents, policies and core.
Invariant: the same seed gives the same rounds, whoever plays.

>>> from armwise import environments
>>> world = environments.Linear(n_arms=10, dim=20, noise=0.1)
>>> world.comparator
'the best arm of each round'
"""

from armwise.environments.adversarial import Adaptive as Adaptive
from armwise.environments.adversarial import AgainstUCB1 as AgainstUCB1
from armwise.environments.adversarial import Experts as Experts
from armwise.environments.adversarial import Switching as Switching
from armwise.environments.budgeted import Budgeted as Budgeted
from armwise.environments.budgeted import Table as Table
from armwise.environments.changing import Drift as Drift
from armwise.environments.changing import Seasonal as Seasonal
from armwise.environments.changing import Switch as Switch
from armwise.environments.data.data import Classification as Classification
from armwise.environments.data.data import Regression as Regression
from armwise.environments.data.data import Rows as Rows
from armwise.environments.data.from_log import FromLog as FromLog
from armwise.environments.data.published import Mushroom as Mushroom
from armwise.environments.data.published import Wheel as Wheel
from armwise.environments.data.published import protocols as protocols
from armwise.environments.data.published import published as published
from armwise.environments.data.rated_lists import RatedLists as RatedLists
from armwise.environments.data.ratings import Ratings as Ratings
from armwise.environments.environment import Block as Block
from armwise.environments.environment import Environment as Environment
from armwise.environments.gaussian_process import GaussianProcess as GaussianProcess
from armwise.environments.graph import Graph as Graph
from armwise.environments.k_armed import KArmed as KArmed
from armwise.environments.linear import Drifting as Drifting
from armwise.environments.linear import Hierarchical as Hierarchical
from armwise.environments.linear import Linear as Linear
from armwise.environments.lists import ListBlock as ListBlock
from armwise.environments.lists import Lists as Lists
from armwise.environments.lists import ListWorld as ListWorld
from armwise.environments.logistic import Logistic as Logistic
from armwise.environments.planted import Planted as Planted
from armwise.environments.tabular import Tabular as Tabular

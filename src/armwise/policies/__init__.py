"""Fixed policies: from a context to an arm, or to a distribution over the arms; and classes of them.

It may import core and native.
Invariant: a policy has no state: the same context gets the same answer.
"""

from armwise.policies.classes import HalfPlane as HalfPlane
from armwise.policies.classes import LinearSample as LinearSample
from armwise.policies.classes import PlanarSeparators as PlanarSeparators
from armwise.policies.classes import PlanarSplits as PlanarSplits
from armwise.policies.classes import PolicyClass as PolicyClass
from armwise.policies.classes import Representatives as Representatives
from armwise.policies.classes import SampledLinear as SampledLinear
from armwise.policies.classes import Stumps as Stumps
from armwise.policies.classes import StumpSplits as StumpSplits
from armwise.policies.distributions import distribution as distribution
from armwise.policies.distributions import distributions as distributions
from armwise.policies.fixed import Constant as Constant
from armwise.policies.fixed import Linear as Linear
from armwise.policies.fixed import Policy as Policy
from armwise.policies.fixed import Stump as Stump
from armwise.policies.fixed import Tree as Tree
from armwise.policies.fixed import Uniform as Uniform

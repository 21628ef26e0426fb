"""Checks that an agent keeps the contract: one list for every agent of the package, and for yours.

It may import core only.
Invariant: a check changes nothing but the agents that it makes.
"""

from armwise.testing.checks import CHECKS as CHECKS
from armwise.testing.checks import Case as Case
from armwise.testing.checks import check_agent as check_agent

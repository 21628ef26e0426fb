"""A Gaussian process posterior over at most m inducing points, O(m^2) per query for ever (native/gp_budget.cpp)."""

from armwise.native._native import gp_budget as _gp_budget

NOVEL = _gp_budget.NOVEL
SWAP = _gp_budget.SWAP
solve_upper = _gp_budget.solve_upper
features = _gp_budget.features
budget_estimate = _gp_budget.budget_estimate
absorb = _gp_budget.absorb
remove = _gp_budget.remove
novelty = _gp_budget.novelty
budget_append = _gp_budget.budget_append
budget_play = _gp_budget.budget_play

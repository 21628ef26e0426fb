"""Gaussian process posteriors over distinct rows: a growing Cholesky factor, and a joint posterior (native/gp.hpp)."""

from __future__ import annotations

from armwise.native._native import gp as _gp

Width = tuple[int, float, float]

JITTER = _gp.JITTER
INDEFINITE = _gp.INDEFINITE
MOST_ROWS = _gp.MOST_ROWS
FIXED, FINITE_ARMS, AGNOSTIC, STAGED = _gp.FIXED, _gp.FINITE_ARMS, _gp.AGNOSTIC, _gp.STAGED
Factor = _gp.Factor
Joint = _gp.Joint
joint_work = _gp.joint_work
multiplier = _gp.multiplier
solve_lower = _gp.solve_lower
play_stages = _gp.play_stages

"""Anytime-valid lower bounds on a running mean: the predictable plug-in empirical-Bernstein sequence."""

from armwise.native._native import sequences as _sequences

# state: n, sum x, sum (x - mean)^2, sum lam, sum lam x, sum psi(lam) (x - mean)^2, best bound so far
STATE = _sequences.STATE
advance_lower = _sequences.advance_lower

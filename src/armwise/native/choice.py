"""Checks and draws that every decision needs: finite input, ties, sampling from a distribution."""

from armwise.native._native import choice as _choice

TIE = _choice.TIE
finite = _choice.finite
LARGEST = _choice.LARGEST
all_finite = _choice.all_finite
all_within = _choice.all_within
plain = _choice.plain
first_best = _choice.first_best
best_arms = _choice.best_arms
draw = _choice.draw
tied_probabilities = _choice.tied_probabilities
row_argmax = _choice.row_argmax
explored = _choice.explored

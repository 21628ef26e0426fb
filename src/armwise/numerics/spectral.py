"""A ridge over the nodes of a graph: A = L + lam I + sum e_a e_a' (native/spectral.cpp)."""

from armwise.numerics._native import spectral as _spectral

node_widths = _spectral.node_widths
learn = _spectral.learn
scores = _spectral.scores
play = _spectral.play

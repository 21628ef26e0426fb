"""A ridge over smooth functions on a graph; means and variances of all nodes are kept (native/spectral.cpp)."""

from armwise.native._native import spectral as _spectral

refresh = _spectral.refresh
learn = _spectral.learn
scores = _spectral.scores
play = _spectral.play

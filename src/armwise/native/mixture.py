"""Several Gaussian processes over the same rows: how likely each is, and what they answer (native/mixture.cpp)."""

from armwise.native._native import mixture as _mixture

condition = _mixture.condition
forms = _mixture.forms
learn = _mixture.learn
scores = _mixture.scores

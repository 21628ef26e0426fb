"""Nested ridge models: one factor that answers for every prefix of the features."""

from armwise.native._native import nested as _nested

estimates = _nested.estimates
learn = _nested.learn
learn_rows = _nested.learn_rows
level = _nested.level
play = _nested.play
scores = _nested.scores

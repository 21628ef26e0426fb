"""Logistic regression with a diagonal Gaussian posterior, over sparse rows (native/logistic.cpp)."""

from armwise.native._native import logistic as _logistic

sparse_rows = _logistic.sparse_rows
compete = _logistic.compete
score_posterior = _logistic.score_posterior
fit = _logistic.fit
play = _logistic.play
play_dense = _logistic.play_dense

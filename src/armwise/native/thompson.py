"""Posterior sampling over ridge models: draws, their winners, and blocks of rounds (native/thompson.cpp)."""

from armwise.native._native import thompson as _thompson

scale = _thompson.scale
posterior_scores = _thompson.posterior_scores
compete = _thompson.compete
score_posterior = _thompson.score_posterior
play = _thompson.play
choose_many = _thompson.choose_many

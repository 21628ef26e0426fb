"""The probability that each arm is the best under a posterior: what Thompson sampling plays (native/winning.hpp)."""

from armwise.native._native import winning as _winning

LEAST: float = _winning.LEAST
normal_cdf = _winning.normal_cdf
beta_cdf = _winning.beta_cdf
smoothed_wins = _winning.smoothed_wins
gaussian = _winning.gaussian
beta = _winning.beta

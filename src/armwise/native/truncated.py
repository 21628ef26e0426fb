"""Least squares on the leading eigenvectors of a Gram matrix: LinREL's model (native/truncated.hpp)."""

from armwise.native._native import truncated as _truncated

decompose = _truncated.decompose
estimate = _truncated.estimate
learn = _truncated.learn
play = _truncated.play
play_stages = _truncated.play_stages

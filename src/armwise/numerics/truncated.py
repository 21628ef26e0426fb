"""Least squares on the leading eigenvectors of a Gram matrix: LinREL's estimate for a block of arms."""

from armwise.numerics._native import truncated as _truncated

estimate = _truncated.estimate

"""Ridge regression one row at a time, kept as a triangular factor of the inverse Gram matrix (native/ridge.hpp)."""

from typing import Any

from armwise.native._native import ridge as _ridge

update = _ridge.update
update_rows = _ridge.update_rows
log_det = _ridge.log_det
refit = _ridge.refit
learn = _ridge.learn
revise = _ridge.revise
estimate_into = _ridge.estimate_into
estimate_all = _ridge.estimate_all
optimistic = _ridge.optimistic
Optimist = _ridge.Optimist
play_optimistic = _ridge.play_optimistic
choose_many = _ridge.choose_many
learn_many = _ridge.learn_many


def optimist(*arguments: Any) -> _ridge.Optimist:
    """An ``Optimist`` in the variant of this machine: what a pickle remembers of one.

    >>> import numpy as np
    >>> optimist(np.zeros((1, 9, 8)), 1, False, True, 1.0, 0.1, 0.0, 1.0).choose(np.ones((1, 1)))
    0
    """
    return Optimist(*arguments)

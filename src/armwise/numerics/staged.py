"""Staged elimination over ridge models: SupLinUCB's blocks of rounds (native/staged.hpp)."""

from armwise.numerics._native import staged as _staged

play = _staged.play

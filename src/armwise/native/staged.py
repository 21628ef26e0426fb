"""Staged elimination: SupLinUCB's blocks of rounds, and a decision of pooled stages (native/staged.hpp)."""

from armwise.native._native import staged as _staged

play = _staged.play
pooled = _staged.pooled

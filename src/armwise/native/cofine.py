"""CoFineUCB: a ridge model drawn toward one in a subspace, step and block (native/cofine.cpp)."""

from armwise.native._native import cofine as _cofine

estimate = _cofine.estimate
learn = _cofine.learn
play = _cofine.play

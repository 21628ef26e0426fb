"""Empirical likelihood of two inequalities between means (native/likelihood.cpp)."""

from armwise.numerics._native import likelihood as _likelihood

largest = _likelihood.largest

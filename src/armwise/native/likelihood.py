"""Empirical likelihood of two inequalities between means (native/likelihood.cpp)."""

from armwise.native._native import likelihood as _likelihood

largest = _likelihood.largest

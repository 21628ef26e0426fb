"""Dictionaries and arms as people have them, taken apart into tokens (native/features_plain.cpp)."""

from armwise.native._native import plain as _plain

flat = _plain.flat
ids_of = _plain.ids_of
shape_of = _plain.shape_of
revalued = _plain.revalued
flat_arms = _plain.flat_arms

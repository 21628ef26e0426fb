"""A whole decision in one call: tokens, their scale, rows, optimistic scores, the draw (native/decisions.cpp)."""

from armwise.numerics._native import decisions as _decisions

flat = _decisions.flat
ids_of = _decisions.ids_of
snapshot = _decisions.snapshot
same_arms = _decisions.same_arms
flat_arms = _decisions.flat_arms
numeric = _decisions.numeric
take_numbers = _decisions.take_numbers
begin = _decisions.begin
decide_optimistic = _decisions.decide_optimistic

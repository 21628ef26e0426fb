"""A whole decision in one call: scales, rows, optimistic scores, the draw, the beginning (native/decisions.cpp)."""

from armwise.native._native import decisions as _decisions

numeric = _decisions.numeric
take_numbers = _decisions.take_numbers
begin = _decisions.begin
predicted = _decisions.predicted
decide_optimistic = _decisions.decide_optimistic
decide_and_begin = _decisions.decide_and_begin
begin_all = _decisions.begin_all

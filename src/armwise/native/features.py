"""The rows of the decision service: JSON's nesting, the scale of numbers, crossed features (native/features.cpp)."""

from armwise.native._native import features as _features

SPAN = _features.SPAN
scan = _features.scan
place = _features.place
scaled = _features.scaled
varied = _features.varied
welford = _features.welford
mix = _features.mix
cross = _features.cross

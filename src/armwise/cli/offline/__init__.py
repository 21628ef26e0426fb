"""Commands on logged data: evaluate, compare, replay, plan; their options, policies and columns.

It may import every room.
Invariant: bad input ends with one line on standard error and exit code 2.
"""

"""Commands for races and theory: race, survey, table, advise.

It may import every room.
Invariant: bad input ends with one line on standard error and exit code 2.
"""

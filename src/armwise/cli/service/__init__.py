"""Commands for the decision service: serve, app, journal, experiment.

It may import every room.
Invariant: bad input ends with one line on standard error and exit code 2.
"""

"""The command line: one file per command, by kind, each a thin layer over a public function.

It may import every room.
Invariant: bad input ends with one line on standard error and a documented exit code.
"""

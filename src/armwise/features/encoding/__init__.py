"""JSON and dictionaries to tokens to rows: the one encoder of the service and of ``Encoder``.

It may import core and native.
Invariant: the compiled reader and the general reader give the same rows, to the bit.
"""

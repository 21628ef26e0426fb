"""Capabilities, which an agent declares by inheriting a mixin: merging, revising, arms that come and go.

It may import core.
Invariant: code that needs a capability asks for the mixin, and whether this object has it now; it compares no classes.
"""

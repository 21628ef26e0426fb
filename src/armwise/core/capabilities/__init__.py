"""What some agents can do and others cannot: one mixin per capability, which an agent inherits to declare it.

May import the contract (``core.agent``). Architecture invariant: whoever asks for a capability asks for the mixin, and
whether this object has it now; nobody compares classes or methods.
"""

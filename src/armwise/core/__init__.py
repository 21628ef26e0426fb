"""The common ground of every agent: the contract (``agent``), inputs, choices, seeds, saving; ``tools``.

It may import native only.
Invariant: a call that is refused leaves the agent as it was; a saved file contains no pickle.
"""

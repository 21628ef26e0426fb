"""Reading the journal: export, evaluation, verification, retention, compaction.

It imports engine, model, journal, offline and core.
Invariant: every format of the exported log says the same.
"""

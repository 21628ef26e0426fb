"""Reading the journal: export, evaluation, verification, retention, compaction.

It may import engine, model, journal, offline, features, core and native.
Invariant: every format of the exported log says the same.
"""

"""The journal: an append-only table of events, and the databases it is kept in."""

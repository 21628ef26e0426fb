"""The journal as it is read: exported, judged, verified, compacted."""

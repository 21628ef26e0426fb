"""oracles."""

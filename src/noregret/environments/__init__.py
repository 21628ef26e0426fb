"""The worlds: what an agent meets in simulation."""

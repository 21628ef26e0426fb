"""What another policy would have earned on logged decisions (survey 6)."""

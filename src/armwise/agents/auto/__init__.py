"""One agent that needs no tuning."""

"""JSON contexts and arms as rows of features."""

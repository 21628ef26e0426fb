"""Models: agents that read JSON and learn a journal, and how they are built and tried."""

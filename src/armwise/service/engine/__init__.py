"""The engine: decides, makes durable, learns; free of any web framework."""

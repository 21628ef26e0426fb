"""Azure AI Personalizer's dialects, so that its official clients work unmodified."""

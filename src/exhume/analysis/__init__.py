"""State and records into answers."""

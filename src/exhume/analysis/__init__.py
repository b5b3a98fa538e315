"""Turn state and records into answers."""

"""What members put into their subscription and assignment bytes, by protocol type."""

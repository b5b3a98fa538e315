"""Tests against real Kafka: its own tools read what we write, its own brokers load it."""

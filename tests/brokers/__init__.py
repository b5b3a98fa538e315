"""Tests against real Kafka: its tools read our logs, its brokers load them."""

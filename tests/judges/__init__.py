"""Judges: what Kafka's own tools and real brokers said about a log, in a form that our answers can be held against."""

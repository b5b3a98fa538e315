"""What else reads the same bytes: a plain Python decoder, Kafka's own dump, and brokers themselves."""

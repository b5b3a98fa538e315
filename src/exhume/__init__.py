"""exhume: what Kafka's group coordinator knew, dug out of the bytes of __consumer_offsets."""

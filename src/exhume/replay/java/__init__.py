"""The load of the Java coordinator (KIP-848 and later): every record is replayed into the state at once."""

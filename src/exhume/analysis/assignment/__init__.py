"""Expected against actual assignments: what assignors make of the inputs, and how the assignments of the log differ."""

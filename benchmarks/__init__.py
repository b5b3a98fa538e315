"""What exhume does in which time and memory, beside the floor and its rivals; `python -m benchmarks --help`."""

"""The range of int64: of record offsets, of times in milliseconds, and of the columns that hold them. Random numbers in it."""

from __future__ import annotations

import os

LEAST_INT64, LARGEST_INT64 = -(2**63), 2**63 - 1


def random_number() -> int:
    """Return a number of 62 random bits, for hashes: the author of a log must not be able to choose values that collide.

    The module `secrets` would import OpenSSL, at the start of each command.
    """
    return int.from_bytes(os.urandom(8), "big") >> 2

"""The range of int64: of record offsets, of times in milliseconds, and of the columns that hold them."""

from __future__ import annotations

LEAST_INT64, LARGEST_INT64 = -(2**63), 2**63 - 1

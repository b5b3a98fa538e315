"""The count of rows that tests compare with what Kafka, or another reading, said."""

from __future__ import annotations

from collections import Counter

#: (what was compared, with what) -> rows.
Compared = Counter[tuple[str, str]]

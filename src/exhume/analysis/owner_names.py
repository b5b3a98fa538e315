"""Names for the owners of partitions: a client keeps its name when it returns under another member id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf

from exhume.analysis.ownership import OwnerRow


class OwnerNames:
    """The names of the owners in these rows of one group, in the order in which they first owned a partition.

    A name is `#instance` or `client@host`. Members that shared such a name, at the same time or in turns, have their member ids as names.
    """

    def __init__(self, rows: Sequence[OwnerRow]) -> None:
        owned = [row for row in rows if row["member_id"] is not None]
        ordered = sorted(owned, key=lambda row: (row["from_record_offset"], row["partition"]))
        self._shared = _shared_names(ordered)
        self.names = [name for name in dict.fromkeys(self.of(row) for row in ordered) if name is not None]

    def of(self, row: OwnerRow) -> str | None:
        """The name of the owner in this row; None without an owner."""
        if row["member_id"] is None:
            return None
        name = name_of(row)
        return row["member_id"] if name in self._shared else name


def name_of(row: OwnerRow) -> str:
    """The instance, or else client and host, of the owner in this row; the member id if the log has neither."""
    if row["group_instance_id"] is not None:
        return f"#{row['group_instance_id']}"
    if row["client_id"] is None and row["client_host"] is None:
        return row["member_id"] or "?"
    return f"{row['client_id'] or '?'}@{(row['client_host'] or '?').removeprefix('/')}"


def _shared_names(rows: Iterable[OwnerRow]) -> set[str]:
    """Names of which two member ids owned partitions at the same time or in turns. `rows` are in the order of their start."""
    ends: dict[str, dict[str, float]] = {}
    began: dict[tuple[str, str], int] = {}
    for row in rows:
        slot = name_of(row), row["member_id"] or ""
        began.setdefault(slot, row["from_record_offset"])
        end = inf if row["to_record_offset"] is None else row["to_record_offset"]
        of_name = ends.setdefault(slot[0], {})
        of_name[slot[1]] = max(end, of_name.get(slot[1], end))
    return {name for name, of_name in ends.items() if any(of_name[earlier] > began[name, later] for earlier, later in pairwise(of_name))}

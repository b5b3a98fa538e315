"""One line for each object that differs, and nothing lost of an offset."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from exhume.analysis.diff import DIFF
from exhume.analysis.diff_lines import diff_lines


def _row(**values: Any) -> dict[str, Any]:
    return dict.fromkeys(DIFF.names) | {"offsets_partition": 3, "group": "g", "change": "changed"} | values


def test_an_offset_that_moved_is_one_line_with_its_difference() -> None:
    place = {"table": "offsets", "topic": "orders", "partition": 2, "before_record_offset": 4, "after_record_offset": 9}
    rows = [
        _row(**place, column="committed_offset", before="100", after="40"),
        _row(**place, column="commit_timestamp_ms", before="0", after="1"),
        _row(table="offsets", change="removed", topic="orders", partition=3, column="committed_offset", before="7", before_record_offset=5),
        _row(table="groups", column="group_state", before='"Stable"', after='"Empty"', after_record_offset=11),
        _row(table="members", member_id="m", column="member_epoch", before="1", after="2", after_record_offset=12),
    ]
    lines = diff_lines(pa.Table.from_pylist(rows, DIFF)).to_pylist()

    assert [tuple(line.values()) for line in lines] == [
        ("~", "offsets", "g", "orders-2", "100 → 40", -60, 9, ["commit_timestamp_ms"]),
        ("-", "offsets", "g", "orders-3", "7", None, 5, []),
        ("~", "groups", "g", None, "Stable → Empty", None, 11, []),
        ("~", "members", "g", "m", "member_epoch 1 → 2", None, 12, []),
    ]

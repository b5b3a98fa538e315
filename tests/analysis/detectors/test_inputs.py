"""The inputs of detectors: files that Kafka's own tools print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from exhume.analysis.detectors.inputs import LiveOffset, read_live_file, read_offsets_file
from exhume.errors import RequestError
from exhume.replay.topic_names import read_topics_file

#: The output of kafka-consumer-groups.sh 3.9.
_LIVE = """
Consumer group 'idle' has no active members.

GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
idle            orders          0          5               10              5               -               -               -

GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
two words       orders          1          -               10              -               app-1-7f        /10.0.0.1       app-1
"""


def test_a_live_listing(tmp_path: Path) -> None:
    file = tmp_path / "live.txt"
    file.write_text(_LIVE, encoding="utf-8")

    assert read_live_file(file) == [
        LiveOffset("idle", "orders", 0, 5, 10),
        LiveOffset("two words", "orders", 1, None, 10),
    ]


@pytest.mark.parametrize("group", ["GROUPIES", "Error: none", "one \U0001f980", "\u2028", " in front", "Consumer group"])
def test_a_live_listing_of_unusual_group_names(tmp_path: Path, group: str) -> None:
    file = tmp_path / "live.txt"
    # Java pads in UTF-16 code units.
    padded = group + " " * (15 - len(group.encode("utf-16-le")) // 2)
    rows = (
        f"{padded} orders          0          9223372036854775806 9223372036854775807 1               a b-7f          /h              a b"
    )
    file.write_text("\ufeff" + _LIVE.splitlines()[3] + "\n" + rows + "\n", encoding="utf-8")

    (found,) = read_live_file(file)

    assert (found.group, found.topic, found.partition) == (group, "orders", 0)
    assert (found.committed_offset, found.end_offset) == (2**63 - 2, 2**63 - 1)


def test_another_listing_has_no_offsets(tmp_path: Path) -> None:
    file = tmp_path / "state.txt"
    file.write_text("GROUP           COORDINATOR (ID)          STATE\n", encoding="utf-8")

    with pytest.raises(RequestError, match="line 1: the headings GROUP, TOPIC, PARTITION, CURRENT-OFFSET are missing"):
        read_live_file(file)


def test_a_line_that_does_not_fit_its_headings(tmp_path: Path) -> None:
    file = tmp_path / "live.txt"
    file.write_text(f"{_LIVE}what is this\n", encoding="utf-8")

    with pytest.raises(RequestError, match="line 9: 'what is this' does not fit"):
        read_live_file(file)


def test_offsets(tmp_path: Path) -> None:
    file = tmp_path / "offsets.txt"
    file.write_text("orders:0:1500\norders:1:0\nlost:0:\n", encoding="utf-8")

    assert read_offsets_file(file) == {("orders", 0): 1500, ("orders", 1): 0}


@pytest.mark.parametrize("read", [read_live_file, read_offsets_file, read_topics_file])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none.txt", r"none.txt: cannot be read: no such file or directory. Check the path$"),
        (".", r": cannot be read: is a directory. Name a file in it$"),
        ("latin.txt", r"latin.txt, byte 4: not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, read: Callable[[Path], object], name: str, expected: str) -> None:
    (tmp_path / "latin.txt").write_bytes(b"a:0:\xe9")

    with pytest.raises(RequestError, match=expected):
        read(tmp_path / name)

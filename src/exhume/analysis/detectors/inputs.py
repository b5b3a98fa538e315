"""What detectors can be given besides logs, as files in the formats that Kafka's own tools print.

--end-offsets, --start-offsets   kafka-get-offsets.sh --time latest, or earliest: `topic:partition:offset`, a line for each partition
--live                           kafka-consumer-groups.sh --describe --all-groups: a header that begins with GROUP, then its columns
--topics                         CSV with a header, topic,topic_id,partitions[,racks]: as for `exhume state`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exhume.codecs.text_files import read_text
from exhume.errors import RequestError
from exhume.replay.topic_names import Topic

TopicPartition = tuple[str, int]

_OFFSET_LINE = re.compile(r"([^:\s]+):([0-9]{1,10}):([0-9]{1,19})?")
_EXPECTED_OFFSETS = "Give it what kafka-get-offsets.sh prints: topic:partition:offset on every line, such as orders:0:1500"
_EXPECTED_LIVE = "Give it what kafka-consumer-groups.sh --describe --all-groups prints, its line of headings too"
_HEADINGS = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET")
#: What the tool prints between its tables.
_REMARKS = ("Consumer group ", "Warning:", "Error:", "Note:", "TOPIC ")


@dataclass(frozen=True, slots=True)
class LiveOffset:
    """A line of a live listing. Offsets are None where the listing has a dash."""

    group: str
    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What was given besides the logs; None is what was not."""

    end_offsets: Mapping[TopicPartition, int] | None = None
    start_offsets: Mapping[TopicPartition, int] | None = None
    topics: Sequence[Topic] | None = None
    live: Sequence[LiveOffset] | None = None
    retention_ms: int | None = None
    #: How many partitions the offsets topic has.
    offsets_partitions: int | None = None


def read_offsets_file(path: Path) -> dict[TopicPartition, int]:
    """Offsets by topic and partition, from what kafka-get-offsets.sh printed. A partition without an offset is left out.

    Raises:
        RequestError: the file cannot be read, or a line is not of this form; names file and line.
    """
    offsets: dict[TopicPartition, int] = {}
    for number, line in _lines(path, _EXPECTED_OFFSETS):
        match = _OFFSET_LINE.fullmatch(line.strip())
        if match is None:
            raise RequestError(f"{path}, line {number}: {line.strip()!r} is no offset of a partition", remedy=_EXPECTED_OFFSETS)
        if match[3]:
            offsets[match[1], int(match[2])] = int(match[3])
    return offsets


def read_live_file(path: Path) -> list[LiveOffset]:
    """The offsets of a live listing, from what kafka-consumer-groups.sh printed.

    The group ends where the heading of the topic begins, since its name may hold blanks; what is behind it up to the lag has none.

    Raises:
        RequestError: the file cannot be read, a table has no headings, or a line does not fit them; names file and line.
    """
    found: list[LiveOffset] = []
    headings: str | None = None
    for number, line in _lines(path, _EXPECTED_LIVE):
        words = line.split()
        if words[0] == _HEADINGS[0] and set(_HEADINGS) <= set(words):
            headings = line
            continue
        try:
            found.append(_live_offset(headings, line))
        except ValueError:
            if line.startswith(_REMARKS):
                continue
            if words[0] == _HEADINGS[0]:
                problem = f"no headings {', '.join(_HEADINGS)}"
            elif headings is None:
                problem = f"{line.strip()!r} is in front of the line of headings"
            else:
                problem = f"{line.strip()!r} does not fit the headings"
            raise RequestError(f"{path}, line {number}: {problem}", remedy=_EXPECTED_LIVE) from None
    if headings is None:
        raise RequestError(f"{path}: nothing is in it", remedy=_EXPECTED_LIVE)
    return found


def _lines(path: Path, expected: str) -> Iterator[tuple[int, str]]:
    text = read_text(path, expected).replace("\r\n", "\n")
    # Names of groups may hold any character that Python, but no tool of Kafka's, breaks lines at.
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _live_offset(headings: str | None, line: str) -> LiveOffset:
    """A line below these headings. Raises ValueError where it does not fit them."""
    if headings is None:
        raise ValueError(line)
    names = headings.split()[1:]
    # Java pads by UTF-16 code units.
    units, width = line.encode("utf-16-le", "surrogatepass"), 2 * headings.index(names[0])
    group, rest = (part.decode("utf-16-le", "surrogatepass") for part in (units[:width], units[width:]))
    cells = dict(zip(names, rest.split(), strict=False))
    if not group.strip(" ") or not set(_HEADINGS[1:]) <= set(cells):
        raise ValueError(line)
    committed, end = (None if cells.get(name, "-") == "-" else int(cells[name]) for name in ("CURRENT-OFFSET", "LOG-END-OFFSET"))
    return LiveOffset(group.rstrip(" "), cells["TOPIC"], int(cells["PARTITION"]), committed, end)

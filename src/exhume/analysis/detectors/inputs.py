"""Inputs of detectors besides the logs: files in the formats that Kafka's own tools print.

--end-offsets, --start-offsets   kafka-get-offsets.sh --time latest, or earliest: `topic:partition:offset`, a line for each partition
--live                           kafka-consumer-groups.sh --describe --all-groups: a header that begins with GROUP, then its columns
--topics                         CSV with a header, topic,topic_id,partitions[,racks]: as for `exhume state`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from exhume.codecs.evidence_files import END_OFFSETS, LIVE, START_OFFSETS
from exhume.codecs.log_directory import LogDirectory
from exhume.codecs.text_files import read_text
from exhume.errors import RequestError
from exhume.replay.topic_names import Topic, captured_topics

TopicPartition = tuple[str, int]

_OFFSET_LINE = re.compile(r"([^:\s]+):([0-9]{1,10}):([0-9]{1,19})?")
_EXPECTED_OFFSETS = "The file must be the output of kafka-get-offsets.sh: topic:partition:offset on each line, for example orders:0:1500"
_EXPECTED_LIVE = "The file must be the output of kafka-consumer-groups.sh --describe --all-groups, with its line of headings"
_HEADINGS = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET")
#: The beginnings of lines that the tool prints between its tables.
_REMARKS = ("Consumer group ", "Warning:", "Error:", "Note:", "TOPIC ")


@dataclass(frozen=True, slots=True)
class LiveOffset:
    """A line of a live listing. An offset is None where the listing has a dash."""

    group: str
    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs besides the logs. None means not given."""

    end_offsets: Mapping[TopicPartition, int] | None = None
    start_offsets: Mapping[TopicPartition, int] | None = None
    topics: Sequence[Topic] | None = None
    live: Sequence[LiveOffset] | None = None
    #: The only topics that the live listing can show: a broker hides the others from its client. None: all topics.
    listed_topics: frozenset[str] | None = None
    retention_ms: int | None = None
    #: The release of the brokers that wrote the logs.
    release: str | None = None
    #: The number of partitions of the offsets topic.
    offsets_partitions: int | None = None
    #: The paths of the logs, for the commands in remedies.
    paths: tuple[str, ...] = ("PATH",)

    def with_captured(self, directories: Sequence[LogDirectory]) -> Inputs:
        """Return these inputs; those that are not given come from the directories that `exhume capture` wrote.

        Raises:
            RequestError: a file of these directories is damaged.
        """
        captured = [directory.captured for directory in directories if directory.captured is not None]
        if not captured:
            return self
        current = [files for files in captured if files.has_current_listing]

        def texts(name: str) -> Iterator[tuple[str, str]]:
            return ((text, files.shown(name)) for files in current if (text := files.text(name)) is not None)

        def offsets(name: str) -> dict[TopicPartition, int] | None:
            found = [parse_offsets(text, path) for text, path in texts(name)]
            return {key: offset for one in found for key, offset in one.items()} if found else None

        topics = captured_topics(directories)
        live = [line for text, path in texts(LIVE) for line in parse_live(text, path)]
        return replace(
            self,
            end_offsets=offsets(END_OFFSETS) if self.end_offsets is None else self.end_offsets,
            start_offsets=offsets(START_OFFSETS) if self.start_offsets is None else self.start_offsets,
            topics=topics if self.topics is None else self.topics,
            listed_topics=frozenset(topic.topic for topic in topics or ()) if self.live is None else self.listed_topics,
            live=(live or None) if self.live is None else self.live,
            retention_ms=captured[0].int_of("offsets_retention_ms") if self.retention_ms is None else self.retention_ms,
            offsets_partitions=captured[0].int_of("offsets_partitions") if self.offsets_partitions is None else self.offsets_partitions,
        )

    def with_paths(self, paths: Sequence[str]) -> Inputs:
        """Return these inputs for logs with these paths, if any are known."""
        return replace(self, paths=tuple(paths)) if paths else self


def read_offsets_file(path: Path) -> dict[TopicPartition, int]:
    """Read the output of kafka-get-offsets.sh: offsets by topic and partition. Partitions without an offset are skipped.

    Raises:
        RequestError: The file cannot be read, or a line has another form. The message names file and line.
    """
    return parse_offsets(read_text(path, _EXPECTED_OFFSETS), str(path))


def parse_offsets(text: str, path: str) -> dict[TopicPartition, int]:
    """Parse the output of kafka-get-offsets.sh; `path` is for errors. Raises RequestError as `read_offsets_file` does."""
    offsets: dict[TopicPartition, int] = {}
    for number, line in _lines(text):
        match = _OFFSET_LINE.fullmatch(line.strip())
        if match is None:
            raise RequestError(f"{path}, line {number}: {line.strip()!r} is not topic:partition:offset", remedy=_EXPECTED_OFFSETS)
        if match[3]:
            offsets[match[1], int(match[2])] = int(match[3])
    return offsets


def read_live_file(path: Path) -> list[LiveOffset]:
    """Read the output of kafka-consumer-groups.sh: the committed offsets of all groups.

    A group name may contain blanks, so its column ends where the heading of the next column begins. The columns from there to the lag
    contain no blanks.

    Raises:
        RequestError: The file cannot be read, a table has no headings, or a line does not fit them. The message names file and line.
    """
    return parse_live(read_text(path, _EXPECTED_LIVE), str(path))


def parse_live(text: str, path: str) -> list[LiveOffset]:
    """Parse the output of kafka-consumer-groups.sh; `path` is for errors. Raises RequestError as `read_live_file` does."""
    found: list[LiveOffset] = []
    headings: str | None = None
    for number, line in _lines(text):
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
                problem = f"the headings {', '.join(_HEADINGS)} are missing"
            elif headings is None:
                problem = f"{line.strip()!r} comes before the line of headings"
            else:
                problem = f"{line.strip()!r} does not fit the headings"
            raise RequestError(f"{path}, line {number}: {problem}", remedy=_EXPECTED_LIVE) from None
    if headings is None:
        raise RequestError(f"{path}: the file is empty", remedy=_EXPECTED_LIVE)
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    text = text.replace("\r\n", "\n")
    # A group name may contain a character at which Python's splitlines breaks lines, and Kafka's tools do not.
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _live_offset(headings: str | None, line: str) -> LiveOffset:
    """Parse a line below these headings. Raises ValueError if it does not fit them."""
    if headings is None:
        raise ValueError(line)
    names = headings.split()[1:]
    # Java pads columns in UTF-16 code units.
    units, width = line.encode("utf-16-le", "surrogatepass"), 2 * headings.index(names[0])
    group, rest = (part.decode("utf-16-le", "surrogatepass") for part in (units[:width], units[width:]))
    cells = dict(zip(names, rest.split(), strict=False))
    if not group.strip(" ") or not set(_HEADINGS[1:]) <= set(cells):
        raise ValueError(line)
    committed, end = (None if cells.get(name, "-") == "-" else int(cells[name]) for name in ("CURRENT-OFFSET", "LOG-END-OFFSET"))
    return LiveOffset(group.rstrip(" "), cells["TOPIC"], int(cells["PARTITION"]), committed, end)

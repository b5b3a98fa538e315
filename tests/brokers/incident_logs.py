"""The logs of all incidents side by side on one broker: each in an offsets partition of its own, with groups that belong there.

The group of a story is `g`, in partition 0. Here it gets a name with the same beginning that belongs to the partition of its log, and its
members get sessions that last until the end of the test. Records and batches do not change otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from exhume.codecs.batch_writer import rewrite_batch
from exhume.codecs.batches import BatchWalk, crc_matches
from exhume.codecs.record_types import decode_record, encode_key, encode_value
from exhume.codecs.records import Record, read_records
from exhume.fixtures import incidents

from .client import group_in

_HALF_AN_HOUR_MS = 1_800_000


@dataclass(frozen=True, slots=True)
class IncidentLog:
    """One offsets partition of one log of an incident, rewritten into `directory`. `title` identifies it."""

    title: str
    offsets_partition: int
    directory: Path


class Place(NamedTuple):
    """An offsets partition, and the number of offsets partitions of its cluster."""

    offsets_partition: int
    offsets_partitions: int


def write_all(directory: Path) -> list[IncidentLog]:
    """Return the logs of all incidents, of each broker, each log once: as many offsets partitions as there are logs."""
    sources = [*_different_logs(directory)]
    logs = []
    for number, (title, source) in enumerate(sources):
        target = directory / "all" / f"__consumer_offsets-{number}"
        _write_anew(source, target, Place(number, len(sources)))
        logs.append(IncidentLog(title, number, target))
    return logs


def _different_logs(directory: Path) -> Iterator[tuple[str, Path]]:
    """Write all incidents. Return the title and the partition directory of each log, each log once."""
    written_already: set[tuple[bytes, ...]] = set()
    for code, incident in incidents.INCIDENTS.items():
        kinds: dict[incidents.Kind, int] = {
            "hit": len(incident.hits),
            "near miss": len(incident.near_misses),
            "undecidable": len(incident.undecidable),
        }
        for kind, which in ((kind, which) for kind, most in kinds.items() for which in range(1, most + 1)):
            title = f"{code}, {kind} {which}"
            written = incidents.write(code, directory / title, kind=kind, which=which)
            for data in written.data_directories:
                for source in sorted(data.glob("__consumer_offsets-*")):
                    content = tuple(segment.read_bytes() for segment in sorted(source.glob("*.log")))
                    if content not in written_already:
                        written_already.add(content)
                        yield f"{title} ({source.relative_to(directory / title)})", source


def _write_anew(source: Path, target: Path, place: Place) -> None:
    """Write the segments with other group ids, without indexes: a broker rebuilds them when it recovers a log."""
    target.mkdir(parents=True)
    for segment in source.glob("*.log"):
        (target / segment.name).write_bytes(_renamed(segment.read_bytes(), place))
    for checkpoint in source.glob("leader-epoch-checkpoint"):
        (target / checkpoint.name).write_bytes(checkpoint.read_bytes())


def _renamed(content: bytes, place: Place) -> bytes:
    """Return these batches with other group ids up to the first damaged one, and the rest unchanged."""
    made, end = bytearray(), 0
    for batch in BatchWalk(content):
        if not crc_matches(content, batch):
            break
        records = [record if batch.is_control else _with_group(record, place) for record in read_records(content, batch)]
        made += rewrite_batch(batch, records, content)
        end = batch.end_position
    return bytes(made) + content[end:]


def _with_group(record: Record, place: Place) -> Record:
    decoded = decode_record(record.key, record.value)
    group = decoded.key.get("group")
    if decoded.number is None or not isinstance(group, str):
        return record
    key = encode_key(decoded.number, decoded.key | {"group": _name_in(place, group)})
    if decoded.number != 2 or decoded.value is None or decoded.value_version is None or decoded.marks:
        return replace(record, key=key)
    members = [
        # No timeout of a client is 0.
        member | {"session_timeout_ms": member["session_timeout_ms"] and _HALF_AN_HOUR_MS}
        for member in decoded.value["members"]
    ]
    return replace(record, key=key, value=encode_value(2, decoded.value_version, decoded.value | {"members": members}))


@cache
def _name_in(place: Place, group: str) -> str:
    return group_in(place.offsets_partition, place.offsets_partitions, group)

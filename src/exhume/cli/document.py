"""The head of a JSON document with several tables: what made it, by which rules, from which bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from exhume._version import __version__
from exhume.errors import ExhumeError

if TYPE_CHECKING:
    from exhume.cli.options import Moment
    from exhume.topic import OffsetsTopic
    from exhume.topic.table_schemas import Json

#: The key of the head, beside the names of tables.
HEAD = "exhume"


def head_of(topic: OffsetsTopic, paths: Sequence[str], *, release: str | None = None, moment: Moment | None = None) -> Mapping[str, Json]:
    """Return the head of an answer about these paths.

    `release` is the one whose rules apply, `moment` null at the end of the logs. `evidence` has the segments that were read, with their
    SHA-256; it is null for remote places, which would be read a second time, and if a file cannot be read again.
    """
    from exhume.topic.table_schemas import SCHEMA_VERSION

    at: dict[str, Json] = {}
    if moment is not None:
        at_offset = moment["at_offset"]
        offsets: Json = {str(partition): offset for partition, offset in at_offset.items()} if isinstance(at_offset, dict) else at_offset
        at = {"at_offset": offsets, "at_time_ms": moment["at_time_ms"], "clock": moment["clock"]}
    evidence: list[Json] | None = None
    if not any("://" in path for path in paths):
        # A file that cannot be read again has its finding; the answer stays.
        with suppress(ExhumeError, OSError):
            files = topic.files()
            evidence = files.filter(files["is_read"]).select(["path", "size_bytes", "sha256"]).to_pylist()
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "release": release,
        "moment": at if any(value is not None for value in at.values()) else None,
        "evidence": evidence,
    }

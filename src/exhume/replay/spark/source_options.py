"""The options of the data source: the arguments of `.option(name, value)` as values. Spark passes them as texts, in any case."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.replicas import RULES, ReplicaRule
from exhume.codecs.segment_reader import ReadOptions
from exhume.errors import RequestError
from exhume.moments import parse_moment
from exhume.replay.spark.kinds import filtered_kinds, kind_named

DEFAULT_BYTES_PER_PARTITION = 64 * 1024 * 1024
#: Options whose names begin like this go to the file system of the URI.
FILESYSTEM_PREFIX = "fs."

_TRUTHS = {"true": True, "false": False}


def _texts(text: str) -> tuple[str, ...]:
    """Several names: a JSON array, or names with commas between them."""
    if text.lstrip().startswith("["):
        names = json.loads(text)
        if not all(isinstance(name, str) for name in names):
            raise ValueError
        return tuple(names)
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(name) for name in text.strip("[] ").split(",") if name.strip())


def _truth(text: str) -> bool:
    return _TRUTHS[text.lower()]


def _rule(text: str) -> ReplicaRule:
    return next(rule for rule in RULES if rule == text)


def _positive(text: str) -> int:
    if int(text) <= 0:
        raise ValueError
    return int(text)


@dataclass(frozen=True, slots=True)
class _Option:
    read: Callable[[str], Any]
    takes: str
    means: str


#: Every option except `kind`, `path` and those of the file system: its parser, its values, its meaning.
OPTIONS: Mapping[str, _Option] = {
    "groups": _Option(_texts, "names", "only records of these groups"),
    "topics": _Option(_texts, "names", "only commits for these topics"),
    "partitions": _Option(_numbers, "numbers", "only commits for these partitions of topics"),
    "types": _Option(_texts, "names or numbers", "only these record types; for the kinds `records` and `dump`"),
    "from_offset": _Option(int, "record offset", "from this record offset on"),
    "to_offset": _Option(int, "record offset", "up to and with this record offset"),
    "from_time": _Option(parse_moment, "moment", "from this moment on"),
    "to_time": _Option(parse_moment, "moment", "up to and with this moment"),
    "offsets_partitions": _Option(_numbers, "numbers", "only these partitions of `__consumer_offsets`; others are not opened"),
    "replicas": _Option(
        _rule, "`all` or `pick`", "a partition that is in several log directories: read all (default), or the one with the last records"
    ),
    "include": _Option(_texts, "names", "leftovers to read too: `deleted`, `swap`, `cleaned`, `delete`, `future`, `stray`"),
    "verify": _Option(_truth, "`true` or `false`", "check the checksum of every batch (default: true)"),
    "raw": _Option(_truth, "`true` or `false`", "raw key and value in every row of the kind `dump` (default: false)"),
    "of": _Option(str, "kind", "what the kind `reads` counts the reading of (default: `records`)"),
    "bytes_per_partition": _Option(
        _positive,
        "bytes",
        f"how much one input partition reads (default: {DEFAULT_BYTES_PER_PARTITION}): smaller segments are packed together",
    ),
    "temp_dir": _Option(str, "directory", "where executors keep what they fetch (default: `TMPDIR` there)"),
}
#: The options that only kinds with a row for each record take.
RECORD_OPTIONS = ("groups", "topics", "partitions", "types", "from_offset", "to_offset", "from_time", "to_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of the data source. `wanted` has the conditions on records; `of` is `kind` except for the kind `reads`."""

    kind: str
    of: str
    places: tuple[str, ...]
    wanted: RecordFilter
    filesystem_options: Mapping[str, str] = field(repr=False)
    replicas: ReplicaRule = "all"
    include: frozenset[str] = frozenset()
    read: ReadOptions = field(default_factory=ReadOptions)
    raw: bool = False
    bytes_per_partition: int = DEFAULT_BYTES_PER_PARTITION
    temp_dir: str | None = None


def read_options(options: Mapping[str, str]) -> SourceOptions:
    """The options of a reader.

    Raises:
        RequestError: an unknown option, or one that the kind does not take; an invalid value; no place.
    """
    given = {name.lower(): text for name, text in options.items()}
    kind = kind_named(given.pop("kind", "records"))
    places = _places(given.pop("path", None), given.pop("paths", None))
    filesystem = {name.removeprefix(FILESYSTEM_PREFIX): given.pop(name) for name in sorted(given) if name.startswith(FILESYSTEM_PREFIX)}
    values = {name: _value(name, text) for name, text in given.items()}
    of = kind_named(values.get("of", "records")) if kind == "reads" else kind
    refused = sorted(set(values) & set(RECORD_OPTIONS) if of not in filtered_kinds() else set(values) & {"types"} - _type_options(of))
    if refused:
        raise RequestError(f"the kind {of} takes no {', '.join(refused)}", remedy="Leave it out, or filter the DataFrame")
    return SourceOptions(
        kind=kind,
        of=of,
        places=places,
        wanted=RecordFilter(
            groups=values.get("groups"),
            topics=values.get("topics"),
            partitions=values.get("partitions"),
            types=values.get("types"),
            from_offset=values.get("from_offset"),
            to_offset=values.get("to_offset"),
            from_time_ms=values.get("from_time"),
            to_time_ms=values.get("to_time"),
            offsets_partitions=values.get("offsets_partitions"),
        ),
        filesystem_options=filesystem,
        replicas=values.get("replicas", "all"),
        include=frozenset(values.get("include", ())),
        read=ReadOptions(verify=values.get("verify", True)),
        raw=values.get("raw", False),
        bytes_per_partition=values.get("bytes_per_partition", DEFAULT_BYTES_PER_PARTITION),
        temp_dir=values.get("temp_dir"),
    )


def _type_options(kind: str) -> set[str]:
    return {"types"} if kind in ("records", "dump") else set()


def _value(name: str, text: str) -> Any:
    option = OPTIONS.get(name)
    if option is None:
        known = ", ".join(["kind", *OPTIONS, f"{FILESYSTEM_PREFIX}…"])
        raise RequestError(f"the data source has no option {name!r}", remedy=f"Known are {known}")
    try:
        return option.read(text)
    except (ValueError, KeyError, StopIteration, TypeError):
        raise RequestError(f"the option {name} cannot be {text!r}", remedy=f"It takes {option.takes}") from None


def _places(path: str | None, paths: str | None) -> tuple[str, ...]:
    places = tuple(json.loads(paths)) if paths else (path,) if path else ()
    if not places:
        raise RequestError("the data source needs a path", remedy='Write .load("s3://bucket/prefix"), or .load([…]) for several places')
    return places

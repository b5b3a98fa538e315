"""The options that functions on Spark share: the files, how to read them, the load, and how to divide it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TypedDict

from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.log_directory import Evidence, discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.codecs.uris import PathOrUri
from exhume.replay.load_request import LoadKeywords, LoadRequest
from exhume.replay.moment import Moment
from exhume.replay.spark.request import WORTH_PARTS_BYTES, Request


@dataclass(frozen=True, kw_only=True)
class EvidenceOptions:
    """The evidence files, and the options of reading them.

    Attributes:
        include: leftovers to read too: `deleted`, `swap`, `cleaned` files, `delete`, `future`, `stray` directories.
        verify: check the CRC of every batch.
        cap_bytes: the number of bytes that one compressed batch may unfold to.
        filesystem_options: endpoint, region, credentials and other options for URIs (docs/uris.md); None: none.
    """

    include: Collection[str] = ()
    verify: bool = True
    cap_bytes: int = DEFAULT_CAP_BYTES
    filesystem_options: Mapping[str, str] | None = None

    @property
    def read(self) -> ReadOptions:
        """The options of reading the files."""
        return ReadOptions(verify=self.verify, cap_bytes=self.cap_bytes)

    def evidence(self, places: PathOrUri | Sequence[PathOrUri] | Evidence) -> Evidence:
        """The logs at these places; evidence is returned unchanged.

        Raises:
            RequestError: an unknown URI scheme or option.
            EvidenceError: the places have no partition of the offsets topic, or it cannot be read.
        """
        if isinstance(places, Evidence):
            return places
        listed = [places] if isinstance(places, str | PathLike) else list(places)
        return discover(
            [place if isinstance(place, Path) else str(place) for place in listed],
            include=frozenset(self.include),
            filesystem_options=self.filesystem_options,
        )


class EvidenceKeywords(TypedDict, total=False):
    """The fields of `EvidenceOptions` as keywords of a function."""

    include: Collection[str]
    verify: bool
    cap_bytes: int
    filesystem_options: Mapping[str, str] | None


@dataclass(frozen=True, kw_only=True)
class StateOptions(LoadRequest, EvidenceOptions):
    """A load on Spark: a `LoadRequest` for the files of `EvidenceOptions`.

    Attributes:
        least_bytes: logs of at least this size are loaded in parts, in parallel; smaller ones whole.
        stretch_bytes: the approximate size of a part; None: from the size of the logs and the number of cores.
    """

    least_bytes: int = WORTH_PARTS_BYTES
    stretch_bytes: int | None = None

    def request(self, tables: Collection[str], moments: Sequence[Moment | None]) -> Request:
        """The load of a job: these tables, at these moments."""
        # Executors get only these fields: options of file systems have passwords.
        load = LoadRequest(**{each.name: getattr(self, each.name) for each in fields(LoadRequest)})
        return Request(
            load=load, tables=tables, moments=moments, read=self.read, least_bytes=self.least_bytes, stretch_bytes=self.stretch_bytes
        )


class StateKeywords(LoadKeywords, EvidenceKeywords, total=False):
    """The fields of `StateOptions` as keywords of a function."""

    least_bytes: int
    stretch_bytes: int | None

"""The library's front door: an offsets topic, wherever its files lie.

offsets_topic    `OffsetsTopic`: a method for each question
tables           records as tables
states           what a coordinator holds
history          one group, and why its offsets are there or not
groups           members and owners over time
diagnosis, explaining, reset_plans
                 answers that join all the others
logs, retention  what they all have in common
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path

from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import Progress, ReadOptions
from exhume.codecs.uris import PathOrUri
from exhume.topic.offsets_topic import OffsetsTopic

__all__ = ["OffsetsTopic", "open_topic"]


def open_topic(
    places: PathOrUri | Sequence[PathOrUri],
    *,
    include: Collection[str] = (),
    verify: bool = True,
    cap_bytes: int = DEFAULT_CAP_BYTES,
    temp_dir: PathOrUri | None = None,
    progress: Progress | None = None,
    filesystem_options: Mapping[str, str] | None = None,
) -> OffsetsTopic:
    """Open data directories, partition directories, segment files or archives, one or a list of them. Nothing is written beside them.

    They lie on this machine, or where a URI says: `s3://bucket/prefix`, `gs://…`, `hdfs://…`, `file://…`.

    Args:
        places: what to read. Several data directories count as replicas, told apart by the `replica` column.
        include: leftovers to read too: `deleted`, `swap`, `cleaned` files, `delete`, `future`, `stray` directories.
        verify: check the CRC of every batch.
        cap_bytes: what one compressed batch may unfold to.
        temp_dir: where members of archives are spilled to, and what is fetched from elsewhere.
        progress: told how far reading has come.
        filesystem_options: endpoint, region, credentials and the like for URIs (docs/uris.md), before those that a URI has itself.

    Raises:
        EvidenceError: nothing of the offsets topic is there, or it cannot be read; names path and remedy.
        RequestError: a URI or an option that is not known.
    """
    listed = [places] if isinstance(places, str | PathLike) else list(places)
    evidence = discover(
        [place if isinstance(place, Path) else str(place) for place in listed],
        include=frozenset(include),
        temp_dir=None if temp_dir is None else str(temp_dir),
        filesystem_options=filesystem_options,
    )
    return OffsetsTopic(evidence, ReadOptions(verify=verify, cap_bytes=cap_bytes, progress=progress), [str(place) for place in listed])

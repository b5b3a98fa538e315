"""The main entry of the library: an offsets topic, from local or remote files.

offsets_topic    `OffsetsTopic`: one method for each answer
states           the state of a coordinator
one_group        one group: its history, the reasons why its offsets exist or not, its page in sentences
groups           members and owners over time
diagnosis, reset_plans
                 answers that combine all the others
logs             records as tables, and the parts that all answers use
retention        the expiry rules of a request
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

    They are on this machine, or in a store that a URI names: `s3://bucket/prefix`, `gs://…`, `hdfs://…`, `file://…`.

    Args:
        places: the paths or URIs to read. Several data directories count as replicas, which the `replica` column distinguishes.
        include: leftovers to read too: `deleted`, `swap`, `cleaned` files, `delete`, `future`, `stray` directories.
        verify: check the CRC of every batch.
        cap_bytes: the number of bytes that one compressed batch may unfold to.
        temp_dir: the directory for members of archives and for fetched files.
        progress: called with the number of bytes read, and the number of all bytes.
        filesystem_options: endpoint, region, credentials and other options for URIs (docs/uris.md); they override those in a URI.

    Raises:
        EvidenceError: the places have no partition of the offsets topic, or it cannot be read; names path and remedy.
        RequestError: an unknown URI scheme or option.
    """
    listed = [places] if isinstance(places, str | PathLike) else list(places)
    evidence = discover(
        [place if isinstance(place, Path) else str(place) for place in listed],
        include=frozenset(include),
        temp_dir=None if temp_dir is None else str(temp_dir),
        filesystem_options=filesystem_options,
    )
    return OffsetsTopic(evidence, ReadOptions(verify=verify, cap_bytes=cap_bytes, progress=progress), [str(place) for place in listed])

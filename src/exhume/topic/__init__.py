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
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from exhume.capture.places import is_cluster
from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import Progress, ReadOptions
from exhume.codecs.uris import PathOrUri
from exhume.findings import Finding
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
    capture_groups: Collection[str] | None = None,
) -> OffsetsTopic:
    """Open data directories, partition directories, segment files or archives, one or a list of them. Nothing is written beside them.

    They are on this machine, or in a store that a URI names: `s3://bucket/prefix`, `gs://…`, `hdfs://…`, `file://…`.
    `kafka://host:port,…` is a running cluster: its log is captured into a temporary directory, which goes when the topic is closed.

    Args:
        places: the paths or URIs to read. Several data directories count as replicas, which the `replica` column distinguishes.
        include: leftovers to read too: `deleted`, `swap`, `cleaned` files, `delete`, `future`, `stray` directories.
        verify: check the CRC of every batch.
        cap_bytes: the number of bytes that one compressed batch may unfold to.
        temp_dir: the directory for members of archives, for fetched files and for captures.
        progress: called with the number of bytes read, and the number of all bytes; not while a cluster is captured.
        filesystem_options: endpoint, region, credentials and other options for URIs (docs/uris.md); they override those in a URI.
        capture_groups: capture only the offsets partitions of these groups of a cluster. None: all.

    Raises:
        EvidenceError: the places have no partition of the offsets topic, or it cannot be read; names path and remedy. No broker
            answers, or it refuses the client.
        RequestError: an unknown URI scheme or option; a cluster, and no client library for it (extra `live`).
    """
    listed = [places] if isinstance(places, str | PathLike) else list(places)
    given = [place if isinstance(place, Path) else str(place) for place in listed]
    with ExitStack() as stack:
        findings: list[Finding] = []
        local: list[str | Path] = []
        for place in given:
            if isinstance(place, str) and is_cluster(place):
                directory = Path(stack.enter_context(TemporaryDirectory(prefix="exhume-", dir=temp_dir)))
                findings += _captured(place, directory, capture_groups)
                local.append(directory)
            else:
                local.append(place)
        evidence = discover(
            local,
            include=frozenset(include),
            temp_dir=None if temp_dir is None else str(temp_dir),
            filesystem_options=filesystem_options,
        )
        evidence.findings.extend(findings)
        options = ReadOptions(verify=verify, cap_bytes=cap_bytes, progress=progress)
        topic = OffsetsTopic(evidence, options, [str(place) for place in local], resources=stack.pop_all())
    if local != given:
        topic.show_places_as([str(place) for place in given])
    return topic


def _captured(place: str, directory: Path, groups: Collection[str] | None) -> list[Finding]:
    """Capture this cluster, and return a finding for each answer that is missing."""
    from exhume.capture import capture_into

    warnings = capture_into(place, directory, groups=groups)
    return [Finding(code="capture_warning", severity="warn", sentence=warning, path=place) for warning in warnings]

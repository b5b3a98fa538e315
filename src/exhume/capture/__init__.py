"""Capture `__consumer_offsets` from a running cluster into an evidence directory (docs/capture.md).

capturing            a capture: its beginning, its two kinds, its manifest
fetching             raw batches from each leader
recorded_partition   the segments of one partition
evidence_directory   the directory and its small files
live_listing         the answers of the coordinators about their groups
cluster, messages    requests to brokers
client_properties, certificates, tokens, places
                     how to connect
metrics              the counts of a flight recorder
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from exhume.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exhume.capture.capturing import Capture, CaptureOptions
    from exhume.capture.fetching import Totals

__all__ = ["capture_into", "open_capture"]


@contextmanager
def open_capture(
    place: str,
    output_dir: Path,
    options: CaptureOptions,
    *,
    command_config: Path | None = None,
    progress: Callable[[Totals], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Capture]:
    """Connect to the cluster `kafka://host:port,…`, and open a capture into this directory: `run_once()` or `follow()` captures.

    Raises:
        EvidenceError: no broker answers, or it refuses the client; or the directory cannot be written.
        RequestError: the client library is missing, or a place, property or option has a wrong form.
    """
    from exhume.capture.client_properties import read_client_properties
    from exhume.capture.places import parse_cluster

    servers, named_config = parse_cluster(place)
    properties = read_client_properties(command_config or named_config)
    _require_client()
    from exhume.capture.capturing import Capture
    from exhume.capture.cluster import Cluster
    from exhume.capture.evidence_directory import EvidenceDirectory

    with ExitStack() as stack:
        directory = stack.enter_context(EvidenceDirectory(output_dir))
        cluster = stack.enter_context(Cluster(servers, properties, timeout_ms=min(options.timeout_ms, 30_000)))
        capture = Capture(cluster, directory, options, progress=progress, should_stop=should_stop)
        stack.callback(capture.close)
        yield capture


def capture_into(
    place: str,
    directory: Path,
    *,
    groups: Collection[str] | None = None,
    with_listing: bool = True,
    progress: Callable[[Totals], None] = lambda _: None,
) -> list[str]:
    """Capture a cluster once up to its end, and return the warnings: sentences about answers that are missing.

    Of `groups` only their offsets partitions; `with_listing` also asks the coordinators.

    Raises:
        EvidenceError: no broker answers, or it refuses the client; or the directory cannot be written.
        RequestError: the client library is missing, or the place or a property has a wrong form.
    """
    _require_client()
    from exhume.capture.capturing import CaptureOptions

    options = CaptureOptions(groups=groups, with_listing=with_listing)
    with open_capture(place, directory, options, progress=progress) as capture:
        capture.run_once()
    return capture.warnings


def _require_client() -> None:
    try:
        import exhume.capture.cluster  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "kafka":
            raise
        raise RequestError("a running cluster needs the client library kafka-python", remedy="pip install 'exhume[live]'") from None

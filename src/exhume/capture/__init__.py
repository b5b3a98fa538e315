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

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from exhume.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exhume.capture.capturing import Capture, CaptureOptions
    from exhume.capture.fetching import Totals

__all__ = ["open_capture"]


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
    try:
        from exhume.capture.capturing import Capture
        from exhume.capture.cluster import Cluster
        from exhume.capture.evidence_directory import EvidenceDirectory
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "kafka":
            raise
        raise RequestError("a running cluster needs the client library kafka-python", remedy="pip install 'exhume[live]'") from None
    with ExitStack() as stack:
        directory = stack.enter_context(EvidenceDirectory(output_dir))
        cluster = stack.enter_context(Cluster(servers, properties, timeout_ms=min(options.timeout_ms, 30_000)))
        capture = Capture(cluster, directory, options, progress=progress, should_stop=should_stop)
        stack.callback(capture.close)
        yield capture

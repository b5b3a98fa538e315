"""The request for a load in plain values, before the logs and the rules of the release are known."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypedDict

from exhume.codecs.uris import PathOrUri
from exhume.replay.broker_log import Stop
from exhume.replay.moment import Moment
from exhume.replay.partition_load import LoadOptions, Mode, View
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import profile_for


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """The options of a load.

    Attributes:
        release: the Kafka release whose coordinator loads the logs; None: the newest known one.
        mode: `strict` loads as the release does, aborted loads included; `lenient` never stops.
        stop: the way in which the brokers stopped; None: as each log directory shows, `clean` if it does not show it. With `_copy`: of
            brokers that start on these files, without the indexes that a copy may lack.
        view: `committed` has what the coordinator answers to requests, `in_memory` has everything in memory.
        groups: the only groups of the answer; None: all.
        topics_file: a CSV file with names of topic ids; None: there is none.
        inputs: the settings of the broker that a load depends on; None: Kafka's defaults.
    """

    release: str | None = None
    mode: Mode = "strict"
    stop: Stop | None = None
    view: View = "committed"
    groups: Collection[str] | None = None
    topics_file: PathOrUri | None = None
    inputs: LoadInputs | None = None

    def options(self, at: Moment | None = None) -> LoadOptions:
        """Return the options of a load up to this moment; None: to the end.

        Raises:
            RequestError: no such release.
        """
        profile = profile_for(self.release)
        return LoadOptions(profile, self.mode, self.stop, self.view, self.inputs or LoadInputs(), at, groups=self.groups)


class LoadKeywords(TypedDict, total=False):
    """The fields of `LoadRequest` as keywords of a function."""

    release: str | None
    mode: Mode
    stop: Stop | None
    view: View
    groups: Collection[str] | None
    topics_file: PathOrUri | None
    inputs: LoadInputs | None

"""Broker profiles: what tells the loads of two Kafka releases apart, as data.

A profile names the coordinator (the Scala one, or the Java one of KIP-848) and the values of every rule in which releases
differ. The loaders hold no release number: they ask the profile.

Source: classic-coordinator and new-coordinator sources of the releases named; each rule is held by a log that real brokers loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from exhume.codecs.layout import Message
from exhume.codecs.layouts import offsets
from exhume.codecs.record_types import RECORD_TYPES
from exhume.errors import RequestError

Coordinator = Literal["classic", "java"]


@dataclass(frozen=True, slots=True)
class BrokerProfile:
    """The rules of one release (or of a span of releases that load alike).

    `values` maps the record types that this release replays to the layout it reads values with, `value_versions` to the versions it
    accepts. What happens to a record type that is not in it is the coordinator's matter: the Scala coordinator of 2.8 aborts, the
    Java one skips the record.
    """

    release: str
    coordinator: Coordinator
    values: Mapping[int, Message]
    value_versions: Mapping[int, range]
    #: What a modern group's epochs are before a record sets them (Java coordinator).
    initial_epoch: int = 1
    #: Offsets between two snapshots that a load commits while it is below the high watermark (Java coordinator).
    commit_interval: int = 16384


def _versions(**ranges: range) -> Mapping[int, range]:
    return MappingProxyType({int(name[1:]): span for name, span in ranges.items()})


_SCALA_VALUES = MappingProxyType({number: RECORD_TYPES[number].message for number in (0, 1, 2)})

_JAVA_TYPES = (1, 2, *range(3, 9), *range(10, 18), *range(19, 24))
_JAVA_VALUES = MappingProxyType({0: offsets.LEGACY_OFFSET_COMMIT_VALUE} | {number: RECORD_TYPES[number].message for number in _JAVA_TYPES})

PROFILES: Mapping[str, BrokerProfile] = MappingProxyType(
    {
        profile.release: profile
        for profile in (
            BrokerProfile("2.8.2", "classic", _SCALA_VALUES, _versions(_0=range(4), _1=range(4), _2=range(4))),
            BrokerProfile(
                "4.3.0",
                "java",
                _JAVA_VALUES,
                MappingProxyType({number: message.versions for number, message in _JAVA_VALUES.items()}),
            ),
        )
    }
)

DEFAULT_RELEASE = "4.3.0"

_ALIASES = {"2.8": "2.8.2", "4.3": "4.3.0"}


def profile_for(release: str | None) -> BrokerProfile:
    """The profile of this release; the newest where none is named.

    Raises:
        RequestError: no profile covers the release; names those that are there.
    """
    name = release or DEFAULT_RELEASE
    profile = PROFILES.get(_ALIASES.get(name, name))
    if profile is None:
        raise RequestError(f"no rules for release {name!r}", remedy=f"Choose one of {', '.join(sorted({*PROFILES, *_ALIASES}))}")
    return profile

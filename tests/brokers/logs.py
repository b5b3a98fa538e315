"""The logs that each coordinator loads, besides the stories. To add more, add a line to `logs_to_load`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exhume.codecs.compression import codec_name
from exhume.fixtures import scenarios
from tests.judges.broker_answers import release_numbers

from .random_logs import OFFSETS_PARTITIONS, RandomLog
from .reach import REACH, Reach

#: Another seed makes other random logs: EXHUME_RANDOM_SEED=7 pytest -m broker tests/brokers/test_logs.py
SEED = os.environ.get("EXHUME_RANDOM_SEED", "1")


@dataclass(frozen=True, slots=True)
class Log:
    """One log to load: `__consumer_offsets-<n>` directories in a directory of its own."""

    name: str
    directory: Path

    @property
    def partitions(self) -> list[Path]:
        return sorted(self.directory.glob("__consumer_offsets-*"))


def logs_to_load(directory: Path, coordinator: str, topic_ids: Mapping[str, str]) -> Iterator[Log]:
    """Write each log that this coordinator must load."""
    reach = REACH[coordinator]
    yield from _random_logs(directory, coordinator, reach, topic_ids)
    yield from _scenarios(directory, coordinator, reach, topic_ids)


def _scenarios(directory: Path, coordinator: str, reach: Reach, topic_ids: Mapping[str, str]) -> Iterator[Log]:
    """Write each scenario that the coordinator can load, in one of its message formats and one codec."""
    release = release_numbers(coordinator.partition("-")[0])
    for number, (name, scenario) in enumerate(scenarios.ALL.items()):
        firsts = scenario.first_releases.items()
        formats = [magic for magic, first in firsts if release_numbers(first) <= release and magic in reach.formats]
        if formats and (not scenario.topics_with_ids or "consumer" in reach.group_types):
            magic = formats[number % len(formats)]
            codecs = reach.codecs(magic)
            codec = codec_name(codecs[number % len(codecs)])
            written = scenarios.write(name, directory / name, message_format=magic, codec=codec, topic_ids=topic_ids)
            yield Log(f"{name}, format {magic}, {codec}", written.data_directories[-1])


def _random_logs(directory: Path, coordinator: str, reach: Reach, topic_ids: Mapping[str, str]) -> Iterator[Log]:
    for partition in range(OFFSETS_PARTITIONS):
        log = Log(f"random {SEED}/{coordinator}/{partition}", directory / f"random-{partition}")
        RandomLog(log.name, partition, reach, topic_ids).write(log.directory)
        yield log


def rounds(logs: Sequence[Log]) -> list[list[Log]]:
    """Divide the logs into few sets without a common offsets partition: one broker start for each set."""
    made: list[list[Log]] = []
    taken: list[set[str]] = []
    for log in logs:
        names = {partition.name for partition in log.partitions}
        for round_logs, used in zip(made, taken, strict=True):
            if not used & names:
                round_logs.append(log)
                used |= names
                break
        else:
            made.append([log])
            taken.append(names)
    return made

"""Where the logs of real brokers lie, and which answer and which dump belongs to which log directory.

The part that `tests/data` holds in archives is always there. The environment variable EXHUME_CORPUS adds a whole corpus of the same layout:

    <story>/ or facts/<id>/ or random/<family>/
        scenario.json            the story
        data/                    the log directory; stories of more than one have data-broker1, data-broker2, data-before-reload
        oracle/before.json       what brokers said; the suffix of the data directory at the end of the name
        oracle/after-R.json      … after release R loaded the offsets partitions
        oracle/restarted-R.json  … after release R started on the whole directory
        oracle/dump-R/*.txt      Kafka's own dump of each segment, by the tool of release R
        oracle/answers.json      instead of many small files: all answers of a hand-made log, by the name that each file would have

Texts are plain or gzip.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests import bundled

from .broker_answers import Coordinator, Expectation, coordinator_of, read_answers, read_json
from .kafka_dump import DumpedSegment, read_dump

BUNDLED = bundled.unpacked()
#: The shares of all log directories, as parameters of a test. All but the first are `slow`.
SHARES = [pytest.param(share, marks=[] if share == 0 else pytest.mark.slow) for share in range(8)]
WHOLE = Path(os.environ["EXHUME_CORPUS"]) if os.environ.get("EXHUME_CORPUS") else None


#: One file can hold the answers of many brokers, which are asked for one after the other.
_read_bundle = lru_cache(maxsize=1)(read_json)


@dataclass(frozen=True)
class Case:
    """One story: its log directories, what was said of them, and what is known of how they came to be."""

    root: Path
    directory: Path

    @property
    def name(self) -> str:
        """The place in the corpus, such as `2.8.2-lifecycle`, `facts/txn-order`, `random/consumer-4.0-105`."""
        return self.directory.relative_to(self.root).as_posix()

    @property
    def is_fact(self) -> bool:
        """True for a small log made by hand to show one rule."""
        return self.name.startswith("facts/")

    @property
    def is_random(self) -> bool:
        """True for synthetic logs: fifty offsets partitions, or some of them, one log each."""
        return self.name.startswith("random/")

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The story as it was written down."""
        plain = self.directory / "scenario.json"
        return read_json(plain if plain.exists() else self.directory / "scenario.json.gz")

    @property
    def data_directories(self) -> dict[str, Path]:
        """Log directories by suffix; "" is `data`."""
        return {path.name.removeprefix("data").lstrip("-"): path for path in sorted(self.directory.glob("data*"))}

    @property
    def is_clean_stop(self) -> bool:
        """Whether the broker that answered took the log as it is, or recovered it after a kill.

        Hand-made logs say so by the clean-shutdown mark beside them. All others were put under a broker that had stopped cleanly.
        """
        return not self.is_fact or (self.data_directories[""] / ".kafka_cleanshutdown").exists()

    @property
    def topic_ids(self) -> dict[str, str]:
        """Topic name to topic id, as far as the story tells."""
        ids: dict[str, str] = self.scenario.get("topic_ids", {})
        return ids

    def answers(self) -> list[AnswerFile]:
        """The answers of every broker that was asked about this story."""
        bundle = next((self.directory / "oracle").glob("answers.json*"), None)
        if bundle is not None:
            return [AnswerFile(self, bundle, label, self._data_for(label)) for label in sorted(_read_bundle(bundle))]
        labels = ((path, path.name.split(".json")[0]) for path in sorted((self.directory / "oracle").glob("*.json*")))
        return [AnswerFile(self, path, label, self._data_for(label)) for path, label in labels]

    def dumps(self) -> list[DumpFile]:
        """Every text of Kafka's own tool."""
        found = []
        for path in sorted((self.directory / "oracle").glob("dump-*/*.txt*")):
            partition, _, base_offset = path.name.split(".txt")[0].rpartition("-")
            label = path.parent.name.removeprefix("dump-")
            segment = self._data_for(label) / partition / f"{base_offset}.log"
            found.append(DumpFile(self, path, segment, label.partition("-")[0]))
        return found

    def _data_for(self, label: str) -> Path:
        directories = self.data_directories
        return next((path for suffix, path in directories.items() if suffix and label.endswith(f"-{suffix}")), directories.get("", Path()))


@dataclass(frozen=True)
class AnswerFile:
    """The answers of one broker, and the log directory that it had loaded. `label` is such as `after-4.3.0`."""

    case: Case
    path: Path
    label: str
    data: Path

    @property
    def id(self) -> str:
        return f"{self.case.name}/{self.label}"

    @property
    def release(self) -> str:
        """The release that was asked; `before` is the one that wrote the log."""
        named = re.search(r"\d+(\.\d+)+", self.label)
        return named[0] if named else str(self.case.scenario["release"])

    @property
    def kind(self) -> str:
        """The kind of `Expectation`."""
        return self.label.partition("-")[0]

    @cached_property
    def coordinator(self) -> Coordinator:
        """The coordinator that answered."""
        return coordinator_of(self._content(), self.label, self.case.directory.name)

    @cached_property
    def expectation(self) -> Expectation:
        """The answers, read: memory that stays."""
        return read_answers(self._content(), self.label, self.case.directory.name, self.case.scenario)

    @property
    def is_after_expiry(self) -> bool:
        """True where an expiry pass ran before the questions: the answers are not those of the log alone."""
        is_expiry_fact = self.case.scenario.get("kind") == "expiry"
        return self.kind == "expired" or (is_expiry_fact and bool(self._content().get("appended")))

    def _content(self) -> dict[str, Any]:
        bundle = _read_bundle(self.path)
        content: dict[str, Any] = bundle.get(self.label, bundle)
        return content


@dataclass(frozen=True)
class DumpFile:
    """Kafka's dump of one segment, by the tool of one release."""

    case: Case
    path: Path
    segment: Path
    release: str

    @property
    def id(self) -> str:
        return f"{self.case.name}/{self.path.parent.name}/{self.path.name.split('.txt')[0]}"

    def read(self) -> DumpedSegment:
        """The dump, parsed."""
        return read_dump(self.path)


def cases(root: Path = BUNDLED) -> list[Case]:
    """Every story under this root: real brokers' directories, hand-made logs, random logs."""
    stories = (path.parent for pattern in ("*/oracle", "facts/*/oracle", "random/*/oracle") for path in sorted(root.glob(pattern)))
    return [Case(root, story) for story in stories]


def answer_files(
    release: str, coordinator: Coordinator | None = None, *, root: Path = BUNDLED, where: Callable[[Case], bool] = lambda _: True
) -> Iterator[AnswerFile]:
    """The answers of this release about every story that `where` lets pass."""
    for case in cases(root):
        if where(case):
            for file in case.answers():
                if file.release == release and coordinator in (None, file.coordinator):
                    yield file


def data_directories(root: Path = BUNDLED, share: int | None = None) -> list[Path]:
    """Return the log directories under this root: all, or one of their `SHARES`."""
    found = sorted({data for case in cases(root) for data in case.data_directories.values()})
    return found if share is None else found[share :: len(SHARES)]


def dump_files(root: Path = BUNDLED) -> Iterator[DumpFile]:
    """Every dump under this root."""
    for case in cases(root):
        yield from case.dumps()


def sweep(cases: Iterable[Case], one_of: int = 8) -> list[Any]:
    """Return stories as parameters of a test. One in `one_of` runs always, the others are `slow`."""
    return mostly_slow([pytest.param(case, id=case.name) for case in cases], one_of)


def mostly_slow(parameters: Iterable[Any], one_of: int = 8) -> list[Any]:
    """Mark parameters of a test as `slow`, except one in `one_of`."""
    slow = [pytest.mark.slow]
    return [pytest.param(*each.values, id=each.id, marks=slow if number % one_of else ()) for number, each in enumerate(parameters)]


def parameters(files: Iterable[AnswerFile | DumpFile]) -> list[Any]:
    """These files as parameters of a test, with names that say which."""
    return [pytest.param(file, id=file.id) for file in files]

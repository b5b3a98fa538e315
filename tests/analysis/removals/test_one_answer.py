"""`why`, `explain` and `diagnose` name the same cause for every removal: of all logs of real brokers, incidents and scenarios."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import exhume
from exhume.analysis.detectors import Inputs, condense, diagnose
from exhume.analysis.detectors.removal_evidence import judgements_of
from exhume.analysis.detectors.removal_facts import learn_removals
from exhume.analysis.removals.causes import Cause, RecordPlace
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import decode_record, role_of
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.durations import parse_duration
from exhume.findings import Finding, Findings
from exhume.fixtures import incidents, scenarios
from tests.judges import corpus

from .test_what_brokers_did import inputs_of

CODES = ("IC-01", "IC-05a", "IC-17", "IC-28")
GONE = ("expired", "group_deleted", "offsets_deleted", "topic_deleted", "last_member_left", "removed")
#: How findings of IC-05a begin.
BEGINNINGS: dict[str, Cause] = {
    "topic ": "topic_deleted",
    "the group was deleted": "group_deleted",
    "a request deleted": "offsets_deleted",
}
#: A finding has so many rows of evidence at most.
MOST_EVIDENCE = 50
#: So many groups of a log are asked for one by one.
SOME_GROUPS = 5
#: Scenarios that remove offsets.
SCENARIOS_WITH_REMOVALS = {"night-shift", "dead-groups", "group-tombstones", "two-caches", "compacted"}
CASES = corpus.cases(corpus.BUNDLED)
KINDS: Mapping[incidents.Kind, Callable[[incidents.Incident], Sequence[incidents.Situation]]] = {
    "hit": lambda incident: incident.hits,
    "near miss": lambda incident: incident.near_misses,
    "undecidable": lambda incident: incident.undecidable,
}


@dataclass(frozen=True)
class Diagnosed:
    """What the detectors of removals find in a log."""

    findings: Sequence[Finding]

    def causes(self, place: RecordPlace) -> set[Cause]:
        """The causes that findings name for this tombstone."""
        return {cause for finding in self.findings if place in _tombstones(finding) and (cause := _cause(finding)) is not None}

    def may_name(self, group: str, topic: str, cause: Cause) -> bool:
        """Whether a finding that lists not all of its evidence may speak of this offset."""
        for finding in self.findings:
            is_long = finding.group == group and len(_rows(finding)) >= MOST_EVIDENCE
            # The evidence of one about several groups is of one log.
            is_wide = finding.topic == topic if cause == "topic_deleted" else _is_sweep(finding) and group in finding.sentence
            if (is_long or is_wide) and _cause(finding) == cause:
                return True
        return False


def _cause(finding: Finding) -> Cause | None:
    """The cause that a finding names; IC-28c of one group only says that it was early."""
    if finding.code == "IC-28c" and not _is_sweep(finding):
        return None
    if finding.confidence == "undecidable" or (_is_sweep(finding) and ": requests, or a shorter retention" in finding.sentence):
        return "removed"
    if finding.code != "IC-05a":
        return "expired"
    return next(cause for beginning, cause in BEGINNINGS.items() if finding.sentence.startswith(beginning))


def _is_sweep(finding: Finding) -> bool:
    """Whether it is about offsets that several groups lost at one moment."""
    return finding.code == "IC-28c" and finding.group is None


def _rows(finding: Finding) -> list[dict[str, object]]:
    assert finding.evidence is None or isinstance(finding.evidence, list)
    return finding.evidence or []


def _tombstones(finding: Finding) -> set[tuple[object, object, object]]:
    return {(finding.replica, finding.offsets_partition, row["record_offset"]) for row in _rows(finding) if row["what"] == "tombstone"}


def _modes(case: corpus.Case) -> list[Inputs]:
    """With what is known of the broker, and with nothing."""
    known = inputs_of(case) if not case.is_fact and not case.is_random else Inputs()
    return [known, Inputs()] if known != Inputs() else [known]


@pytest.mark.parametrize("case", corpus.sweep(CASES, one_of=6))
def test_what_why_takes_its_answers_from_is_what_detectors_report(case: corpus.Case) -> None:
    for directory in case.data_directories.values():
        with discover([directory]) as evidence:
            condensed = condense(SegmentReader(evidence, ReadOptions(), Findings()))
            for inputs in _modes(case):
                diagnosed = Diagnosed(diagnose(condensed, inputs, codes=CODES))
                learn_removals(condensed, inputs)
                for group in {each.group for each in condensed.groups()}:
                    for place, judgement in judgements_of(condensed, group, inputs).items():
                        assert diagnosed.causes(place) <= {judgement.cause}, (group, place, judgement)


def _removed(topic: exhume.OffsetsTopic) -> dict[str, dict[RecordPlace, tuple[str, int] | None]]:
    """By group, the keys of its tombstones; None is for the group itself."""
    found: dict[str, dict[RecordPlace, tuple[str, int] | None]] = {}
    for row in (
        topic.records().read_all().select(["replica", "offsets_partition", "record_offset", "is_control", "key", "value"]).to_pylist()
    ):
        decoded = decode_record(row["key"], None)
        group = decoded.key.get("group")
        if row["value"] is None and not row["is_control"] and group is not None and role_of(decoded.number) in ("offset_commit", "group"):
            key = (decoded.key["topic"], decoded.key["partition"]) if decoded.key.get("partition") is not None else None
            found.setdefault(group, {})[row["replica"], row["offsets_partition"], row["record_offset"]] = key
    return found


def _agree(directories: Collection[Path], inputs: Inputs, groups: slice = slice(None)) -> int:
    """How many answers of `why` about offsets that are gone are those of `explain` and `diagnose`."""
    count = 0
    with exhume.open([*directories]) as topic:
        diagnosed = Diagnosed([*topic.diagnose(inputs, codes=CODES)])
        removed = _removed(topic)
        for group in sorted(removed)[groups]:
            answers = topic.why(group, release=inputs.release, retention_ms=inputs.retention_ms, now_ms=4_000_000_000_000).to_pylist()
            gone = [row for row in answers if row["topic"] is not None and row["code"] in GONE]
            for row in gone:
                places = [(row["replica"], row["offsets_partition"], offset) for offset in row["records"]]
                own = [place for place in places if removed[group].get(place) == (row["topic"], row["partition"])]
                named = {cause for place in own for cause in diagnosed.causes(place)}
                assert named <= {row["code"]}, (row, named)
                if row["code"] not in ("removed", *named):
                    assert diagnosed.may_name(group, row["topic"], row["code"]), row
                count += 1
            page = topic.explain(group, release=inputs.release, retention_ms=inputs.retention_ms).to_pylist()
            assert _explained(page) <= {row["code"] for row in gone}
            assert bool(_explained(page)) == bool(gone)
            reported = {each.code for each in diagnosed.findings if each.group == group and each.severity != "info"}
            # A finding about several groups of a partition is about none of them, and stands on the page of each.
            wide = {each.code for each in diagnosed.findings if each.group is None and each.severity != "info"}
            assert reported - {"IC-05a"} <= _reported(page) <= reported | wide
    return count


def _explained(page: Iterable[dict[str, str]]) -> set[str]:
    """The causes that a page names for offsets that are gone."""
    sentences = [row["sentence"] for row in page if row["section"] == "missing"]
    matches = (re.search(r" (?:is|are) gone(?: \(([a-z ]+)\))?: ", sentence) for sentence in sentences)
    codes = {"removed" if match[1] is None else match[1].replace(" ", "_") for match in matches if match is not None}
    return codes & {*GONE}


def _reported(page: Iterable[dict[str, str]]) -> set[str]:
    """The codes of findings about removals on a page."""
    found = {code for row in page if row["section"] == "odd" for code in re.findall(r"\((IC-[0-9]+[a-d]?)\)$", row["sentence"])}
    return {code for code in found if code.startswith(CODES)}


def _given(command: str) -> Inputs:
    match = re.search(r"--retention (\S+)", command)
    return Inputs(retention_ms=None if match is None else parse_duration(match[1]))


@pytest.mark.one_of(12)
@pytest.mark.parametrize("code", incidents.INCIDENTS)
def test_of_every_incident(code: str, tmp_path: Path) -> None:
    count = 0
    for kind, situations_of in KINDS.items():
        for situation in situations_of(incidents.INCIDENTS[code]):
            written = incidents.write(code, tmp_path / kind / situation.title, kind=kind, which=situation.title)
            count += _agree(written.data_directories, _given(written.command))

    # Every incident of these codes removes offsets.
    assert count or not code.startswith(CODES)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", scenarios.ALL)
def test_of_every_scenario(name: str, tmp_path: Path) -> None:
    written = scenarios.write(name, tmp_path)
    for release in ("2.8.2", None):
        count = _agree(written.data_directories, Inputs(release=release))
        assert count or name not in SCENARIOS_WITH_REMOVALS


@pytest.mark.parametrize("case", corpus.sweep((case for case in CASES if not case.is_random), one_of=24))
def test_of_some_groups_of_every_story(case: corpus.Case) -> None:
    for directory in case.data_directories.values():
        for inputs in _modes(case):
            _agree([directory], inputs, slice(SOME_GROUPS))

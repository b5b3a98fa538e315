"""All sections about a group, in order, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from exhume.analysis.explanation.commits import commits
from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.kind_and_state import identity, standing
from exhume.analysis.explanation.members import members
from exhume.analysis.explanation.missing import missing
from exhume.analysis.explanation.notable import notable
from exhume.analysis.explanation.rebalances import rebalances
from exhume.analysis.explanation.sentences import Command, Sentence
from exhume.arrow_rows import OfLog, schema_of, table_of
from exhume.findings import Confidence

SectionName = Literal["what_it_is", "state", "members", "rebalances", "commits", "odd", "missing", "next"]  # plain: values of a column


class ExplanationRow(OfLog):
    """One row per sentence, in the order of the page; one page for each offsets partition of each replica that has records of the group.

    `confidence` is that of the sentence, `not_excluded` names other possible causes. `first_record_offset` to `last_record_offset` are the
    records of this offsets partition that prove it; null where the whole log does. `next_command` shows more of it, as a shell takes it; in
    the section `next` the sentence is its purpose.
    """

    group: str
    section: SectionName
    sentence: str
    confidence: Confidence
    not_excluded: str | None
    first_record_offset: int | None
    last_record_offset: int | None
    next_command: str | None


EXPLANATION = schema_of(ExplanationRow)

_SECTIONS: Mapping[SectionName, Callable[[GroupFacts], Iterator[Sentence]]] = {
    "what_it_is": identity,
    "state": standing,
    "members": members,
    "rebalances": rebalances,
    "commits": commits,
    "odd": notable,  # plain: the value of a column
    "missing": missing,
}


def pages(facts: Iterable[GroupFacts], places: Sequence[str]) -> pa.Table:
    """Return the pages of these groups as `EXPLANATION`. Commands read `places`."""
    return table_of(EXPLANATION, [row for each in facts for row in _page(each, places)])


def _page(facts: GroupFacts, places: Sequence[str]) -> Iterator[ExplanationRow]:
    seen: dict[Command, None] = {}
    for section, sentences_of in _SECTIONS.items():
        for sentence in sentences_of(facts):
            if sentence.next_command is not None:
                seen.setdefault(sentence.next_command)
            yield _row(facts, section, sentence, places)
    for command in (*_first(facts), *seen):
        sentence = Sentence(command.purpose, next_command=command)
        if command.line(places) is not None:
            yield _row(facts, "next", sentence, places)


def _first(facts: GroupFacts) -> Iterator[Command]:
    """Yield the commands that suit any group."""
    commands = facts.commands
    moment = commands.moment
    if moment:
        yield commands.by_release("state", *moment, purpose="See the whole state at that moment")
    yield commands.by_release("history", purpose="See the history of the group, record by record")


def _row(facts: GroupFacts, section: SectionName, sentence: Sentence, places: Sequence[str]) -> ExplanationRow:
    return {
        "replica": facts.origin[0],
        "offsets_partition": facts.origin[1],
        "group": facts.group,
        "section": section,
        "sentence": sentence.text,
        "confidence": sentence.confidence,
        "not_excluded": sentence.not_excluded,
        "first_record_offset": min(sentence.records, default=None),
        "last_record_offset": max(sentence.records, default=None),
        "next_command": None if sentence.next_command is None else sentence.next_command.line(places),
    }

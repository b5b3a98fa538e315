"""Tables that need arguments, as table macros: `state('4.3', at_time => '2026-11-20T03:00')`, `history('billing')`.

A macro calls a function of Python, which returns all rows as one list, and makes rows of this list again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

import pyarrow as pa

from exhume.analysis.completeness import COMPLETENESS
from exhume.analysis.diff import DIFF
from exhume.analysis.explanation.page import EXPLANATION
from exhume.analysis.history import HISTORY
from exhume.analysis.reset_plan import RESET_PLAN, RESET_RECORDS
from exhume.analysis.why import WHY
from exhume.errors import RequestError
from exhume.moments import parse_moment
from exhume.replay.state_tables import SCHEMAS
from exhume.topic.logs import AtOffset
from exhume.topic.sql.views import Answers

#: The arguments of a macro, as text; None: not given.
Arguments = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Question:
    """A table of arguments: its columns, the names of required and of optional arguments, and the function that makes it."""

    schema: pa.Schema
    answer: Callable[[Answers, Arguments], pa.Table]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """All arguments, in order."""
        return self.required + self.optional


class _Moment(TypedDict):
    at_time_ms: int | None
    at_offset: AtOffset | None


class _Key(TypedDict):
    topic: str | None
    partition: int | None
    release: str | None


def _state(answers: Answers, given: Arguments, name: str) -> pa.Table:
    state = answers.topic.state(release=given["release"] or answers.release, **_moment(given))
    return answers.topic.completeness(state) if name == "completeness" else state.tables[name]


def _diff(answers: Answers, given: Arguments) -> pa.Table:
    return answers.topic.diff(
        from_time_ms=_time(given["from_time"]),
        from_offset=_offsets(given["from_offset"]),
        to_time_ms=_time(given["to_time"]),
        to_offset=_offsets(given["to_offset"]),
        release=given["release"] or answers.release,
    )


def _history(answers: Answers, given: Arguments) -> pa.Table:
    return answers.topic.history(_group(given), **_key(answers, given))


def _why(answers: Answers, given: Arguments) -> pa.Table:
    return answers.topic.why(_group(given), **_key(answers, given))


def _explanation(answers: Answers, given: Arguments) -> pa.Table:
    return answers.topic.explain(_group(given), release=given["release"] or answers.release, **_moment(given))


def _plan(answers: Answers, given: Arguments, *, records: bool) -> pa.Table:
    release, moment = given["release"] or answers.release, _moment(given)
    match given["taken_back"]:
        case "lost" | "before_rewind" | None as taken_back:
            plan = answers.topic.reset_plan([_group(given)], release=release, taken_back=taken_back, **moment)
            return plan.records if records else plan.table
        case other:
            raise RequestError(f"no target {other!r}", remedy="Write taken_back => 'lost' or 'before_rewind', or name a moment")


_MOMENT = ("release", "at_time", "at_offset")
_KEY = ("topic", "partition", "release")

QUESTIONS: Mapping[str, Question] = {
    **{f"state_{name}": Question(schema, partial(_state, name=name), (), _MOMENT) for name, schema in SCHEMAS.items()},
    "state_completeness": Question(COMPLETENESS, partial(_state, name="completeness"), (), _MOMENT),
    "diff": Question(DIFF, _diff, (), ("from_time", "to_time", "from_offset", "to_offset", "release")),
    "history": Question(HISTORY, _history, ("group",), _KEY),
    "why": Question(WHY, _why, ("group",), _KEY),
    "explanation": Question(EXPLANATION, _explanation, ("group",), _MOMENT),
    "reset_plan": Question(RESET_PLAN, partial(_plan, records=False), ("group",), ("taken_back", *_MOMENT)),
    "reset_records": Question(RESET_RECORDS, partial(_plan, records=True), ("group",), ("taken_back", *_MOMENT)),
}


def macros() -> dict[str, str]:
    """Return the statement that makes each macro, by its name.

    `state` chooses its table by name: its statement is made while DuckDB plans the query.
    """
    made = {name: _macro(name, question) for name, question in QUESTIONS.items() if not name.startswith("state_")}
    call = " || ', ' || ".join(f"coalesce('''' || replace({name}::VARCHAR, '''', '''''') || '''', 'NULL')" for name in _MOMENT)
    made["state"] = (
        "CREATE MACRO state(release := NULL, name := 'offsets', at_time := NULL, at_offset := NULL) AS TABLE "
        f"FROM query('SELECT unnest(_state_' || name || '([' || {call} || ']), max_depth := 2)')"
    )
    return made


def _macro(name: str, question: Question) -> str:
    # The name of a column would hide an argument of the same name, and `group` is a word of SQL.
    arguments = [_argument(each) for each in question.arguments]
    declared = [*arguments[: len(question.required)], *(f"{each} := NULL" for each in arguments[len(question.required) :])]
    passed = ", ".join(f"{each}::VARCHAR" for each in arguments)
    return f"CREATE MACRO {name}({', '.join(declared)}) AS TABLE SELECT unnest(_{name}([{passed}]), max_depth := 2)"


def _argument(name: str) -> str:
    return "of_group" if name == "group" else name


def _group(given: Arguments) -> str:
    group = given["group"]
    if group is None:
        raise RequestError("a group is missing", remedy="Name it first, such as history('billing')")
    return group


def _key(answers: Answers, given: Arguments) -> _Key:
    partition = given["partition"]
    if partition is not None and not partition.isdigit():
        raise RequestError(f"no partition {partition!r}", remedy="Write a number, such as partition => 3")
    return {
        "topic": given["topic"],
        "partition": None if partition is None else int(partition),
        "release": given["release"] or answers.release,
    }


def _moment(given: Arguments) -> _Moment:
    return {"at_time_ms": _time(given["at_time"]), "at_offset": _offsets(given["at_offset"])}


def _time(text: str | None) -> int | None:
    return None if text is None else parse_moment(text)


def _offsets(text: str | None) -> AtOffset | None:
    """Parse one record offset, or a map of DuckDB as text: `{3=4711, 7=1200}`."""
    if text is None or text.isdigit():
        return None if text is None else int(text)
    pairs = re.findall(r"([0-9]{1,10})=([0-9]{1,19})", text)
    if not pairs:
        raise RequestError(f"{text!r} is no record offset", remedy="Write a number, or MAP {3: 4711} by offsets partition")
    return {int(partition): int(offset) for partition, offset in pairs}

"""A fact stands in one module, and rows have types: held by what `tools/measure_house.py` lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.codecs.record_types import OFFSET_COMMIT_TYPES, RECORD_TYPES
from tools import measure_house


def test_the_table_alone_knows_the_numbers_of_record_types() -> None:
    assert measure_house.record_type_numbers() == []


@pytest.mark.parametrize(
    "line",
    [
        "is_commit = record.record_type in (0, 1)",
        "is_streams = row['record_type'] >= 17",
        "is_known = decoded.number in range(2, 24)",
        "_OFFSET_COMMITS = (0, 1)",
        "_COMMIT_KEYS = (b'\\0\\0', b'\\0\\1')",
        "key = encode_key(2, {'group': name})",
        "versions = profile.value_versions[1]",
        "keys = [(6, own), (3, own)]",
        "profile = JavaProfile(creating_types=frozenset({3, 5}))",
        "message = RECORD_TYPES[2].message",
        "types = [RECORD_TYPES[number] for number in (1, 2)]",
        "is_group = records[RECORD_TYPE, at] == 2",
    ],
)
def test_a_number_of_a_record_type_is_seen(line: str) -> None:
    assert [hit.text for hit in measure_house.numbers_in("module.py", f"def function(*arguments):\n    {line}\n{line}\n")]


@pytest.mark.parametrize(
    "line",
    [
        "is_commit = record.record_type in OFFSET_COMMIT_TYPES",
        "is_commit = control.number not in (ABORT, COMMIT)",
        "is_first = number == 0",
        "STANDING, RECORD_TYPE = range(2)",
        "sizes = values[0]",
    ],
)
def test_other_numbers_are_not_meant(line: str) -> None:
    assert measure_house.numbers_in("module.py", f"def function(*arguments):\n    {line}\n") == []


def test_every_record_type_but_those_of_offsets_has_a_family_and_role_of_its_own() -> None:
    roles = [(row.family, row.role) for row in RECORD_TYPES.values() if row.number not in OFFSET_COMMIT_TYPES]

    assert len(set(roles)) == len(roles)


def test_no_constant_stands_in_several_modules() -> None:
    assert {name: [hit.module for hit in hits] for (name, _), hits in measure_house.constants_in_several_modules().items()} == {}


def test_constants_are_compared_by_name_and_value(tmp_path: Path) -> None:
    sources = {
        "one.py": "_DAY_MS = 86_400_000\n_MOST, _LEAST = 5, 1\n",
        "two.py": "DAY_MS = 24 * 3600 * 1000\n_MOST: int = 6\n",
        "three.py": "_NAMES = frozenset({'a'})\n",
        "four.py": "_NAMES = frozenset({'a'})\n_MADE = dict()\n",
    }
    for name, source in sources.items():
        (tmp_path / name).write_text(source)

    found = measure_house.constants_in_several_modules(tmp_path)

    assert {name: [hit.module for hit in hits] for (name, _), hits in found.items()} == {
        "DAY_MS": ["one.py", "two.py"],
        "NAMES": ["four.py", "three.py"],
    }


def test_rows_have_types() -> None:
    assert measure_house.untyped_rows() == []


@pytest.mark.parametrize("line", ["_Row = dict[str, Any]", "def rows() -> list[dict[str, Any]]: ...", "row: dict[str, Any] = {}"])
def test_a_row_without_a_type_is_seen(line: str) -> None:
    assert [hit.text for hit in measure_house.untyped_in("module.py", f"{line}\n")] == [line]


@pytest.mark.parametrize("line", ["text = 'dict[str, Any]'", "names: dict[str, str] = {}", "Fields = Mapping[str, Any]"])
def test_other_mappings_are_not_meant(line: str) -> None:
    assert measure_house.untyped_in("module.py", f"{line}\n") == []

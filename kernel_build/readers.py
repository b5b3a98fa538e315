"""Write the kernels that read keys and values field by field, from the layouts of `exhume.codecs.layouts`.

    python -m kernel_build.readers

A reader takes the bytes of a struct and returns a `NamedTuple` of numbers: the value of a number, start and size of a text, the start of
an id, the number of elements of an array. It is made for the versions whose fields are of the types in `_Reader`; Python code decodes
later versions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
TARGET = Path("exhume", "codecs", "kernels", "readers.py")
sys.path.insert(0, str(SOURCES))

from exhume.codecs.layout import Array, Field, Message, Scalar, Struct  # noqa: E402
from exhume.codecs.layouts import classic_group, offsets  # noqa: E402

#: The bytes of a number, by its type; and of an id.
_WIDTHS = {"int16": 2, "int32": 4, "int64": 8}
_ID_BYTES = 16
_LINE_LENGTH = 140

_HEAD = '''"""Read keys and values of commits and of classic groups, field by field.

`python -m kernel_build.readers` writes this module from the layouts: do not edit it. A reader gets the bytes from `position` to `end`. It
returns the fields, and in `after` the position after them, or `NO_POSITION` for bytes that only `record_types` can decode. It returns the
start and the size of a text; the size is `NULL` for a null, and in a version without the field. Texts in values are exact.
"""

from __future__ import annotations

from typing import NamedTuple

from exhume.codecs.kernels import inlined
from exhume.codecs.kernels.fields import BAD, NULL, length, tagged, text
from exhume.codecs.kernels.primitives import NO_POSITION, int16, int32, int64, unsigned_varint
from exhume.codecs.kernels.types import Bytes, Number, Rows
'''


def module() -> str:
    """Return the text of the module of all readers."""
    commit, group = offsets.OFFSET_COMMIT_VALUE, classic_group.GROUP_METADATA_VALUE
    key = Message("OffsetCommitKey", range(1), offsets.OFFSET_COMMIT_KEY)
    group_key = Message("GroupMetadataKey", range(1), classic_group.GROUP_METADATA_KEY)
    readers = [
        _Reader("CommitKey", "commit_key", key, key.struct, is_value=False),
        _Reader("GroupKey", "group_key", group_key, group_key.struct, is_value=False),
        _Reader("Commit", "commit", commit, commit.struct),
        _Reader("Group", "group", group, group.struct),
        _Reader("Member", "member", group, classic_group.MEMBER),
    ]
    parts = [_HEAD.rstrip() + "\n\n" + "\n".join([*_sizes(commit, group), *_common_places(commit)])]
    parts += [part for reader in readers for part in reader.parts()]
    parts += _common_reader(commit)
    return "\n\n".join(part.strip("\n") + "\n" for part in parts)


def write() -> None:
    """Write the module, if it differs from what the layouts give."""
    path, text = SOURCES / TARGET, module()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# Constants


def _sizes(commit: Message, group: Message) -> Iterator[str]:
    key = offsets.OFFSET_COMMIT_KEY
    yield "#: The newest versions of a commit and of a group that these kernels read."
    yield f"NEWEST_COMMIT_VERSION, NEWEST_GROUP_VERSION = {_versions(commit)[-1]}, {_versions(group)[-1]}"
    yield "#: The bytes of the record type that begins a key, of a commit key with empty names, and of the partition, its last field."
    yield f"TYPE_BYTES, LEAST_COMMIT_KEY_BYTES, PARTITION_BYTES = 2, {2 + _least_bytes(key)}, {_WIDTHS[_scalar(key.fields[-1]).name]}"
    yield "#: The bytes of the smallest member."
    least = min(_least_bytes(classic_group.MEMBER, version, group) for version in _versions(group))
    yield f"LEAST_MEMBER_BYTES = {least}"


def _versions(message: Message) -> Sequence[int]:
    """Return the versions that a reader can read: those before the first one with a field of another type."""
    known = []
    for version in message.versions:
        if not all(_is_readable(field) for field in message.struct.fields if field.is_in(version)):
            break
        known.append(version)
    return known


def _is_readable(field: Field, *, is_element: bool = False) -> bool:
    if isinstance(field.type, Scalar):
        return field.type.name in (*_WIDTHS, "string", "bytes" if is_element else "uuid")
    if not isinstance(field.type, Array) or not isinstance(field.type.element, Struct) or field.nullable or field.tag is not None:
        return False
    return not is_element and all(_is_readable(each, is_element=True) for each in field.type.element.fields)


def _least_bytes(struct: Struct, version: int = 0, message: Message | None = None) -> int:
    is_flexible = message is not None and message.is_flexible(version)
    lengths = {"string": 1, "bytes": 1} if is_flexible else {"string": 2, "bytes": 4}
    sizes = _WIDTHS | lengths | {"uuid": _ID_BYTES}
    return sum(sizes[_scalar(field).name] for field in struct.fields if field.is_in(version) and field.tag is None) + is_flexible


def _scalar(field: Field) -> Scalar:
    assert isinstance(field.type, Scalar), field
    return field.type


# Readers


class _Reader:
    """The text of the reader of one struct: its `NamedTuple`, its kernels, and the kernel that writes the fields to a column."""

    def __init__(self, type_name: str, name: str, message: Message, struct: Struct, *, is_value: bool = True) -> None:
        self.type_name, self.name, self.message, self.is_value = type_name, name, message, is_value
        self.versions = _versions(message)
        #: An element of the message gets its version from the caller.
        self.is_element = struct is not message.struct
        self.fields = [field for field in struct.fields if any(field.is_in(version) for version in self.versions)]
        arrays = [place for place, field in enumerate(self.fields) if isinstance(field.type, Array)]
        if len(arrays) > 1:
            raise NotImplementedError(f"{message.name}: a reader for two arrays")
        untagged = [field for field in self.fields if field.tag is None]
        #: The untagged fields up to the array, and those after it.
        self.front = untagged[: untagged.index(self.fields[arrays[0]]) + 1] if arrays else untagged
        self.rest = untagged[len(self.front) :]
        self.tagged = sorted((field for field in self.fields if field.tag is not None), key=lambda field: field.tag or 0)
        self.has_array = bool(arrays)
        self.nothing = f"NO_{name.upper()}"

    def parts(self) -> Iterator[str]:
        yield self._type()
        yield self._front()
        if self.has_array:
            yield self._end()
        if self.is_value:
            yield self._put()

    @property
    def _has_version(self) -> bool:
        return self.is_value and not self.is_element

    def _names(self) -> list[str]:
        """Return the names of the numbers, without `after`."""
        return [*(["version"] if self._has_version else []), *(name for field in self.fields for name in _names(field))]

    def _type(self) -> str:
        of = f"an element of {self.message.name}" if self.is_element else self.message.name
        lines = [f"class {self.type_name}(NamedTuple):", f'    """The fields of {of}."""', ""]
        lines += [f"    {name}: Number" for name in [*self._names(), "after"]]
        names = [*self._names(), "after"]
        lines += ["", "", *_call(0, f"{self.nothing} = {self.type_name}", ["NO_POSITION" if name == "after" else "NULL" for name in names])]
        return "\n".join(lines)

    def _front(self) -> str:
        takes = "data: Bytes, position: Number, end: Number" + (", version: Number" if self.is_element else "")
        lines = ["@inlined", f"def read_{self.name}({takes}) -> {self.type_name}:", f'    """{self._summary()}"""']
        checked = 0
        if self._has_version:
            checked = sum(_width(field) for field in takewhile(lambda field: _width(field) and not self._condition(field), self.front))
            lines += [
                f"    if end - position < {2 + checked}:",
                f"        return {self.nothing}",
                "    version = int16(data, position)",
                f"    if version < {self.versions[0]} or version > {self.versions[-1]}:",
                f"        return {self.nothing}",
                "    position += 2",
            ]
        lines += self._start(field for field in self.fields if field not in self.front or self._condition(field))
        lines += self._read(self.front, checked)
        if not self.has_array:
            lines += self._read_tags()
        lines += _call(4, f"return {self.type_name}", [*self._names(), "position"])
        return "\n".join(lines)

    def _summary(self) -> str:
        versions = f"versions {self.versions[0]} to {self.versions[-1]}" if self.versions[-1] else ""
        if self.is_element:
            return f"Read an element of {self.message.name} in this version."
        if not self.is_value:
            return f"Read the fields of {self.message.name}, which come after the record type; texts may be not exact."
        until = f", up to the number of {self.front[-1].name}" if self.has_array else ""
        return f"Read {self.message.name}, {versions}{until}."

    def _end(self) -> str:
        array = self.front[-1].name
        lines = [
            "@inlined",
            f"def read_{self.name}_end(data: Bytes, position: Number, end: Number, {self.name}: {self.type_name}) -> {self.type_name}:",
            f'    """Read the fields of {self.message.name} after its {array}; return all fields."""',
            f"    version = {self.name}.version",
        ]
        later = [*self.rest, *self.tagged]
        lines += self._start(field for field in later if field in self.tagged or self._condition(field))
        lines += self._read(self.rest)
        lines += self._read_tags()
        own = {name for field in later for name in _names(field)} | {"version"}
        lines += _call(4, f"return {self.type_name}", [*(n if n in own else f"{self.name}.{n}" for n in self._names()), "position"])
        return "\n".join(lines)

    def _put(self) -> str:
        lines = [
            "@inlined",
            f"def put_{self.name}({self.name}: {self.type_name}, rows: Rows, first: Number, at: Number) -> None:",
            '    """Write the fields to column `at`, from row `first` on, in their order."""',
        ]
        places = ["first", *(f"first + {place}" for place in range(1, len(self._names())))]
        lines += [f"    rows[{place}, at] = {self.name}.{name}" for place, name in zip(places, self._names(), strict=True)]
        return "\n".join(lines)

    # One field

    @property
    def _is_flexible(self) -> bool:
        return self.message.flexible_since is not None and self.message.flexible_since <= self.versions[-1]

    @property
    def _is_compact(self) -> str:
        return "is_compact" if self._is_flexible else "False"

    def _start(self, absent: Iterable[Field]) -> list[str]:
        """Return the first lines: the variables that not every version sets."""
        lines = [f"    is_compact = version >= {self.message.flexible_since}"] if self._is_flexible else []
        return lines + [line for field in absent for line in self._default(field)]

    def _condition(self, field: Field) -> str:
        """Return the condition for a version that has this field; nothing if every version has it."""
        first, last = self.versions[0], self.versions[-1]
        until = last if field.until is None else min(field.until, last)
        if field.since <= first and until == last:
            return ""
        if field.since == until:
            return f"version == {until}"
        if until == last:
            return f"version >= {field.since}"
        return f"version <= {until}" if field.since <= first else f"{field.since} <= version <= {until}"

    def _default(self, field: Field) -> list[str]:
        """Return the lines for a field that is absent."""
        if isinstance(field.type, Array):
            return [f"    {field.name}_count = 0"]
        kind = _scalar(field).name
        if kind == "uuid":
            return [f"    {field.name}_start = NULL"]
        if kind in _WIDTHS:
            return [f"    {field.name} = {field.default_value(self.versions[-1])}"]
        lines = [f"    {field.name}_start, {field.name}_size = position, NULL"]
        if field.tag is not None and field.default_value(self.versions[-1]) is not None:
            assert not field.default_value(self.versions[-1]), field
            lines += [f"    if {self._condition(field) or 'True'}:", f"        {field.name}_size = 0"]
        return lines

    def _read(self, fields: Sequence[Field], checked: int = 0) -> Iterator[str]:
        """Yield the lines that read these untagged fields at `position`; so many bytes after it are there."""
        for (condition, is_fixed), run in groupby(fields, lambda field: (self._condition(field), _width(field) > 0)):
            own = list(run)
            lines: list[str] = []
            if is_fixed:
                if not checked:
                    lines += [f"    if end - position < {sum(map(_width, own))}:", f"        return {self.nothing}"]
                checked = 0
                for field in own:
                    kind = _scalar(field).name
                    lines.append(
                        "    " + (f"{field.name} = {kind}(data, position)" if kind in _WIDTHS else f"{field.name}_start = position")
                    )
                    lines.append(f"    position += {_width(field)}")
            else:
                lines += [line for field in own for line in self._read_sized(field)]
            yield from [f"    if {condition}:", *("    " + line for line in lines)] if condition else lines

    def _read_sized(self, field: Field) -> Iterator[str]:
        nothing = f"        return {self.nothing}"
        kind = "array" if isinstance(field.type, Array) else _scalar(field).name
        if kind == "array":
            yield f"    {field.name}_count, position = length(data, position, end, True, {self._is_compact})"
            yield f"    if {field.name}_count < 0:"
            yield nothing
            return
        yield f"    {field.name}_size, position = {self._sized(kind)}"
        yield f"    if {field.name}_size {'== BAD' if field.nullable else '< 0'}:"
        yield nothing
        yield f"    {field.name}_start = position"
        yield f"    position += {f'max({field.name}_size, 0)' if field.nullable else f'{field.name}_size'}"

    def _sized(self, kind: str) -> str:
        if kind == "string" and self.is_value:
            return f"text(data, position, end, {self._is_compact})"
        return f"length(data, position, end, {kind == 'bytes'}, {self._is_compact})"

    def _read_tags(self) -> Iterator[str]:
        """Yield the lines for the tagged section. A section with other tags, or in another order, is left to `record_types`."""
        if not self._is_flexible:
            return
        yield "    if is_compact:"
        yield "        tags, position = unsigned_varint(data, position, end)"
        yield f"        if position == NO_POSITION{'' if self.tagged else ' or tags'}:"
        yield f"            return {self.nothing}"
        for field in self.tagged:
            since = self.message.flexible_since
            condition = "" if field.since == since and field.until is None else self._condition(field)
            yield f"        if tags{f' and {condition}' if condition else ''}:"
            yield f"            size, start = tagged(data, position, end, {field.tag})"
            yield from self._read_tagged(field, _scalar(field).name)
        if self.tagged:
            yield "        if tags:"
            yield f"            return {self.nothing}"

    def _read_tagged(self, field: Field, kind: str) -> Iterator[str]:
        if _width(field):
            yield f"            if size == {_width(field)}:"
            yield "                " + (f"{field.name} = {kind}(data, start)" if kind in _WIDTHS else f"{field.name}_start = start")
        else:
            reads = "text(data, start, start + size, True)" if kind == "string" else "length(data, start, start + size, True, True)"
            is_bad = f"{field.name}_size {'== BAD' if field.nullable else '< 0'}"
            yield "            if size >= 0:"
            yield f"                {field.name}_size, {field.name}_start = {reads}"
            yield f"                if {is_bad} or {field.name}_start + max({field.name}_size, 0) != start + size:"
            yield f"                    return {self.nothing}"
        yield "                position = start + size"
        yield "                tags -= 1"


def _width(field: Field) -> int:
    """Return the bytes of a number or an id; 0 for a field with a length."""
    return {**_WIDTHS, "uuid": _ID_BYTES}.get(field.type.name, 0) if isinstance(field.type, Scalar) else 0


def _names(field: Field) -> list[str]:
    """Return the names of the numbers of a field."""
    if isinstance(field.type, Array):
        return [f"{field.name}_count"]
    kind = _scalar(field).name
    if kind == "uuid":
        return [f"{field.name}_start"]
    return [field.name] if kind in _WIDTHS else [f"{field.name}_start", f"{field.name}_size"]


def _call(indent: int, head: str, arguments: Sequence[str]) -> list[str]:
    """Return the lines of a call, broken as the formatter breaks it."""
    space = " " * indent
    line = f"{space}{head}({', '.join(arguments)})"
    if len(line) <= _LINE_LENGTH:
        return [line]
    inner = f"{space}    {', '.join(arguments)}"
    if len(inner) <= _LINE_LENGTH:
        return [f"{space}{head}(", inner, f"{space})"]
    return [f"{space}{head}(", *(f"{space}    {each}," for each in arguments), f"{space})"]


# Common commits

#: The version of most commits: the last one whose fields are numbers and one text.
_COMMON = offsets.COMMIT_FLEXIBLE_SINCE - 1


def _common_fields(commit: Message) -> tuple[dict[str, int], Field, dict[str, int]]:
    """Return the one text of a common commit, and the fields before and after it: their places from the start, or from the text's end."""
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    metadata: Field | None = None
    place = 2
    for field in commit.struct.fields:
        if not field.is_in(_COMMON):
            continue
        kind = _scalar(field).name
        if kind in _WIDTHS:
            (before if metadata is None else after)[field.name] = place
            place += _WIDTHS[kind]
        else:
            assert kind == "string", field
            assert metadata is None, field
            metadata, before["metadata"], place = field, place + 2, 0
    assert metadata is not None
    after["end"] = place
    return before, metadata, after


def _common_places(commit: Message) -> Iterator[str]:
    before, _, after = _common_fields(commit)
    yield "#: A common commit value: its version, its bytes without metadata, and the place of the metadata, which comes after its size."
    yield f"COMMON_VERSION, COMMON_BYTES, COMMON_METADATA_AT = {_COMMON}, {before['metadata'] + after['end']}, {before['metadata']}"


def _common_reader(commit: Message) -> Iterator[str]:
    before, metadata, after = _common_fields(commit)
    yield '''
@inlined
def common_metadata_size(data: Bytes, start: Number, size: Number) -> Number:
    """Return the bytes of metadata of a common commit value with nothing after its fields; -1 for another value."""
    metadata_size = size - COMMON_BYTES
    if metadata_size < 0 or int16(data, start) != COMMON_VERSION or int16(data, start + COMMON_METADATA_AT - 2) != metadata_size:
        return -1
    return metadata_size
'''
    values = ["COMMON_VERSION"]
    for field in _Reader("Commit", "commit", commit, commit.struct).fields:
        kind = _scalar(field).name
        if field is metadata:
            values += ["metadata", "metadata_size"]
        elif not field.is_in(_COMMON):
            values.append(str(field.default_value(_COMMON)) if kind in _WIDTHS else "NULL")
            values += ["NULL"] if kind in ("string", "bytes") else []
        elif field.name in before:
            values.append(f"{kind}(data, start + {before[field.name]})")
        else:
            values.append(f"{kind}(data, metadata_end + {after[field.name]})" if after[field.name] else f"{kind}(data, metadata_end)")
    lines = [
        "@inlined",
        "def read_common_commit(data: Bytes, start: Number, metadata_size: Number) -> Commit:",
        '    """Return the fields of a common commit value; `common_metadata_size` has the bytes of its metadata."""',
        "    metadata = start + COMMON_METADATA_AT",
        "    metadata_end = metadata + metadata_size",
        *_call(4, "return Commit", [*values, f"metadata_end + {after['end']}"]),
    ]
    yield "\n".join(lines)


if __name__ == "__main__":
    write()

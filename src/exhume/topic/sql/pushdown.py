"""Turn the condition of a scan into a `RecordFilter`, so that the reader decodes no record that the query leaves out.

DuckDB hands a condition over as an Arrow expression, whose parts Arrow does not show. So its text is read, an expression is built from what
was read, and Arrow compares the two: only a condition that was read without a doubt narrows the reading. The filter may take more records
than the condition: the scan applies the whole condition to all rows that it gives.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs.record_filter import RecordConditions
from exhume.errors import RequestError
from exhume.int64 import LARGEST_INT64
from exhume.moments import parse_moment

#: The columns that a `RecordFilter` can select by, and their conditions.
Pushed = Literal["groups", "topics", "partitions", "types", "offsets_partitions", "offset", "time_ms"]

_Value = TypeVar("_Value")

_VALUE_SET = re.compile(r"\{value_set=\w+(?:\[[^\]]*\])?:(\[.*?\]), null_matching_behavior=MATCH\}", re.DOTALL)
_TIME = re.compile(r"(?<=[=<>] )(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?Z)")
_COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True, slots=True)
class _Condition:
    """A condition that was read: its expression, and the column with its values where it is a simple one."""

    expression: pc.Expression
    column: str | None = None
    operator: str = ""
    values: tuple[Any, ...] = ()
    parts: tuple[_Condition, ...] = ()


class _NotRead(Exception):
    """The text has a part that has no simple meaning."""


def conditions_of(expression: pc.Expression, schema: pa.Schema, pushed: dict[str, Pushed]) -> RecordConditions:
    """Return conditions that every row of the scan meets; none if the expression could not be read.

    `pushed` names the columns of this table that a `RecordFilter` can select by.
    """
    try:
        condition = _read(ast.parse(_as_python(str(expression)), mode="eval").body, schema)
    except (_NotRead, SyntaxError, ValueError, RecursionError, pa.ArrowInvalid, RequestError):
        return {}
    if not condition.expression.equals(expression):
        return {}
    found: RecordConditions = {}
    for part in _conjuncts(condition):
        if part.column in pushed:
            _narrow(found, pushed[part.column], part)
    return found


def _as_python(text: str) -> str:
    text = _VALUE_SET.sub(lambda match: match[1], text.replace(", {nan_is_null=false}", ""))
    return _TIME.sub(r'"\1"', text)


def _read(node: ast.expr, schema: pa.Schema) -> _Condition:
    match node:
        case ast.BoolOp(op, values):
            parts = tuple(_read(value, schema) for value in values)
            if isinstance(op, ast.And):
                return _Condition(reduce(and_, (part.expression for part in parts)), operator="and", parts=parts)
            return _either(parts)
        case ast.Compare(ast.Name(column), [operator], [value]) if type(operator) in _COMPARED:
            sign, constant = _COMPARED[type(operator)], _constant(value)
            return _Condition(_compared(column, sign, _scalar(constant, schema.field(column).type)), column, sign, (constant,))
        case ast.Call(ast.Name("is_valid"), [ast.Name(column)]):
            return _Condition(pc.field(column).is_valid())
        case ast.Call(ast.Name("is_null"), [ast.Name(column)]):
            return _Condition(pc.field(column).is_null())
        case ast.Call(ast.Name("if_else"), [ast.Call(ast.Name("is_valid"), [ast.Name(column)]), ast.Call(ast.Name("is_in")) as found, _]):
            return _one_of(column, found.args, schema)
    raise _NotRead


def _one_of(column: str, arguments: list[ast.expr], schema: pa.Schema) -> _Condition:
    match arguments:
        case [ast.Name(same), ast.List(elements)] if same == column:
            values = tuple(_constant(element) for element in elements)
            is_in = pc.field(column).isin(pa.array(values, schema.field(column).type))
            return _Condition(pc.if_else(pc.field(column).is_valid(), is_in, pa.scalar(None, pa.bool_())), column, "in", values)
    raise _NotRead


def _either(parts: tuple[_Condition, ...]) -> _Condition:
    """Return the condition that one of these is met: a choice of values if all choose values of one column."""
    expression = reduce(or_, (part.expression for part in parts))
    column = parts[0].column
    if column is not None and all(part.column == column and part.operator in ("==", "in") for part in parts):
        return _Condition(expression, column, "in", tuple(value for part in parts for value in part.values))
    return _Condition(expression)


def _compared(column: str, sign: str, value: pa.Scalar) -> pc.Expression:
    field = pc.field(column)
    match sign:
        case "==":
            return field == value
        case "!=":
            return field != value
        case "<":
            return field < value
        case "<=":
            return field <= value
        case ">":
            return field > value
    return field >= value


def _constant(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return -value
        case ast.Name("true" | "false" as name):
            return name == "true"
    raise _NotRead


def _scalar(value: Any, data_type: pa.DataType) -> pa.Scalar:
    return pa.scalar(parse_moment(value) if pa.types.is_timestamp(data_type) else value, data_type)


def _conjuncts(condition: _Condition) -> Iterator[_Condition]:
    if condition.operator == "and":
        for part in condition.parts:
            yield from _conjuncts(part)
    else:
        yield condition


def _narrow(found: RecordConditions, pushed: Pushed, part: _Condition) -> None:
    is_choice = part.operator in ("==", "in")
    match pushed:
        case "offset" | "time_ms" if is_choice:
            numbers = [_number(value) for value in part.values]
            _bound(found, pushed, ">=", min(numbers))
            _bound(found, pushed, "<=", max(numbers))
        case "offset" | "time_ms":
            (bound,) = part.values
            _bound(found, pushed, part.operator, _number(bound))
        case "types" if is_choice:
            types = [str(value) for value in part.values]
            earlier = found.get("types")
            # A number and a name can be the same type: the condition chosen first narrows the reading.
            if not earlier or {each.isdigit() for each in earlier} == {each.isdigit() for each in types}:
                found["types"] = _both(earlier, types)
        case "groups" | "topics" if is_choice:
            found[pushed] = _both(found.get(pushed), [str(value) for value in part.values])
        case "partitions" | "offsets_partitions" if is_choice:
            found[pushed] = _both(found.get(pushed), [_number(value) for value in part.values])


def _both(earlier: Collection[_Value] | None, values: list[_Value]) -> list[_Value]:
    """Return the values that both conditions choose."""
    return values if earlier is None else [value for value in values if value in earlier]


def _bound(found: RecordConditions, pushed: Literal["offset", "time_ms"], operator: str, number: int) -> None:
    first: Literal["from_offset", "from_time_ms"] = "from_offset" if pushed == "offset" else "from_time_ms"
    last: Literal["to_offset", "to_time_ms"] = "to_offset" if pushed == "offset" else "to_time_ms"
    if operator in (">", ">="):
        found[first] = max(number, found.get(first) or 0)
    elif operator in ("<", "<="):
        earlier = found.get(last)
        found[last] = number if earlier is None else min(number, earlier)


def _number(value: Any) -> int:
    number = parse_moment(value) if isinstance(value, str) else int(value)
    return min(number, LARGEST_INT64)

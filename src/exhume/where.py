"""Conditions on the rows of a table, as text: `group = 'billing' and committed_offset > 100`.

    comparison   =  ==  !=  <>  <  <=  >  >=
    glob         group ~ 'pay*'    group !~ 'pay*'
    list         topic in ('orders', 'refunds')    not in
    null         leader_epoch is null    is not null
    joined by    and  or  not  ( )

A name is a column; a column alone is true where its value is true. Text is in single or double quotes. A time is text too: it is read as
every option for times reads it. A comparison with null is false, and so is its `not`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from fnmatch import translate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from exhume.errors import RequestError, did_you_mean
from exhume.moments import parse_moment

_TOKEN = re.compile(r"""('(?:[^']|'')*'|"[^"]*")|(!~|~|<>|!=|<=|>=|==|=)|([A-Za-z_][A-Za-z_0-9]*)|(\s+|.)""", re.DOTALL)
#: Words and signs, as Python writes them. The operator @ stands for a glob, % for its opposite: both bind more closely than comparisons.
_WORDS = {"and": "and", "or": "or", "not": "not", "in": "in", "is": "is", "null": "None", "none": "None", "true": "True", "false": "False"}
_SIGNS = {"=": "==", "<>": "!=", "~": "@", "!~": "%"}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: pc.equal,
    ast.NotEq: pc.not_equal,
    ast.Lt: pc.less,
    ast.LtE: pc.less_equal,
    ast.Gt: pc.greater,
    ast.GtE: pc.greater_equal,
}
_REMEDY = "Write a condition such as: group = 'billing' and committed_offset > 100"


class Where:
    """A condition on rows.

    Args:
        text: the condition.

    Raises:
        RequestError: the text is no condition.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = ast.parse(_as_python(text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self._refused() from error
        #: The columns of the condition.
        self.columns = sorted({node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)})

    def __repr__(self) -> str:
        return f"Where({self.text!r})"

    def filter(self, rows: pa.Table | pa.RecordBatch) -> Any:
        """Return the rows, a table or a batch, that meet the condition, in their order.

        Raises:
            RequestError: no such column; or a value of another type than its column.
        """
        mask = self._evaluated(self._tree, rows)
        if not isinstance(mask, pa.Array | pa.ChunkedArray) or not pat.is_boolean(mask.type):
            raise self._refused()
        return rows.filter(mask)

    def _refused(self) -> RequestError:
        return RequestError(f"{self.text!r} is not a condition", remedy=_REMEDY)

    def _evaluated(self, node: ast.expr, rows: Any) -> Any:
        match node:
            case ast.BoolOp(op=op, values=values):
                parts = [self._mask(value, rows) for value in values]
                joined = parts[0]
                for part in parts[1:]:
                    joined = (pc.and_ if isinstance(op, ast.And) else pc.or_)(joined, part)
                return joined
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return pc.invert(self._mask(operand, rows))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(left, op, right, rows)
            case ast.BinOp(left=left, op=ast.MatMult() | ast.Mod() as op, right=ast.Constant(value=str(glob))):
                found = self._globbed(left, glob, rows)
                return pc.invert(found) if isinstance(op, ast.Mod) else found
            case ast.Name(id=name):
                return self._column(name, rows)
        raise self._refused()

    def _mask(self, node: ast.expr, rows: Any) -> Any:
        mask = self._evaluated(node, rows)
        if not pat.is_boolean(mask.type):
            raise self._refused()
        return pc.fill_null(mask, False)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, rows: Any) -> Any:
        if not isinstance(left, ast.Name):
            raise self._refused()
        column = self._column(left.id, rows)
        if isinstance(op, ast.Is | ast.IsNot) and isinstance(right, ast.Constant) and right.value is None:
            return column.is_null() if isinstance(op, ast.Is) else column.is_valid()
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List):
            values = pa.array([self._value(each, left.id, column, rows) for each in right.elts], column.type)
            found = pc.is_in(column, value_set=values)
            return found if isinstance(op, ast.In) else pc.and_(column.is_valid(), pc.invert(found))
        if type(op) not in _COMPARE:
            raise self._refused()
        value = self._column(right.id, rows) if isinstance(right, ast.Name) else self._value(right, left.id, column, rows)
        try:
            return pc.fill_null(_COMPARE[type(op)](column, value), False)
        except pa.ArrowException as error:
            raise RequestError(f"--where compares {left.id}, which is {column.type}, with another type", remedy=_REMEDY) from error

    def _globbed(self, left: ast.expr, glob: str, rows: Any) -> Any:
        if not isinstance(left, ast.Name):
            raise self._refused()
        column = self._column(left.id, rows)
        if not pat.is_string(column.type):
            raise RequestError(f"{left.id} is {column.type}, and only text has globs", remedy=_REMEDY)
        # The end of a text is \Z in Python up to 3.13, \z after it and in Arrow.
        pattern = translate(glob).removesuffix(r"\Z").removesuffix(r"\z")
        return pc.fill_null(pc.match_substring_regex(column, f"^{pattern}$"), False)

    def _column(self, name: str, rows: Any) -> Any:
        if name not in rows.schema.names:
            raise RequestError(f"no column {name!r}", remedy=did_you_mean(name, rows.schema.names))
        column = rows.column(name)
        if pat.is_timestamp(column.type):
            return column.cast(pa.int64())
        return column

    def _value(self, node: ast.expr, name: str, column: Any, rows: Any) -> Any:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return -node.operand.value if isinstance(node.operand.value, int | float) else self._value(node.operand, name, column, rows)
        if not isinstance(node, ast.Constant):
            raise self._refused()
        is_time = pat.is_timestamp(rows.schema.field(name).type) or name.endswith("_ms")
        if isinstance(node.value, str) and is_time:
            return parse_moment(node.value)
        try:
            pa.scalar(node.value, column.type)
        except (pa.ArrowException, TypeError) as error:
            raise RequestError(f"{name} is {column.type}, and {node.value!r} is not", remedy=_REMEDY) from error
        return node.value


def _as_python(text: str) -> str:
    pieces = []
    for quoted, sign, word, other in _TOKEN.findall(text):
        if quoted:
            content = quoted[1:-1].replace("''", "'") if quoted[0] == "'" else quoted[1:-1]
            pieces.append(repr(content))
        elif word:
            pieces.append(_WORDS.get(word.lower(), word))
        else:
            pieces.append(_SIGNS.get(sign, sign) or (" " if other.isspace() else other))
    return "".join(pieces)

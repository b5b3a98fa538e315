"""Objects as they show in a notebook: small tables of HTML, with every name from the evidence made harmless."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exhume.escape import printable

_MOST_ROWS = 50


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of HTML; rows after the fiftieth are counted."""
    rows = list(rows)
    head = "".join(f"<th>{_cell(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows[:_MOST_ROWS])
    more = f"<p>{len(rows) - _MOST_ROWS:,} more rows</p>" if len(rows) > _MOST_ROWS else ""
    return f"<p><b>{_cell(title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    from html import escape

    return "" if value is None else escape(printable(str(value)))

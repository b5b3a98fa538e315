"""Groups as people name them: a name, a glob such as `pay*`, several with commas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from exhume.errors import RequestError, near_by

if TYPE_CHECKING:
    from exhume.topic import OffsetsTopic

_PATTERN = ("*", "?", "[", ",")


def is_pattern(name: str) -> bool:
    """True if this may be a glob or a list, and not the name of one group."""
    return any(sign in name for sign in _PATTERN)


def matched(topic: OffsetsTopic, wanted: Sequence[str] | None) -> list[str] | None:
    """Return the groups that these names and globs stand for; None without any.

    A name that a group has is that group, also with a comma or an asterisk in it. The log is read only for a name with such a sign.

    Raises:
        RequestError: no group matches a glob; or no group of the log has a name of a list.
    """
    if not wanted:
        return None
    if not any(map(is_pattern, wanted)):
        return [*dict.fromkeys(wanted)]
    known = topic.group_names()
    found: dict[str, None] = {}
    for text in wanted:
        for name in [text] if text in known or "," not in text else [part.strip() for part in text.split(",") if part.strip()]:
            hits = [name] if name in known else [group for group in known if fnmatchcase(group, name)]
            if not hits:
                raise RequestError(f"no group matches {name!r}", remedy=near_by(name.strip("*?"), known))
            found.update(dict.fromkeys(hits))
    return [*found]


def the_one(topic: OffsetsTopic, wanted: str) -> str:
    """Return the group that this name or glob stands for.

    Raises:
        RequestError: no group, or several groups.
    """
    found = matched(topic, [wanted]) or []
    if len(found) != 1:
        raise RequestError(f"{len(found)} groups match {wanted!r}", remedy=f"Choose one of {', '.join(found[:20])}")
    return found[0]


def refuse_unknown(topic: OffsetsTopic, wanted: Collection[str] | None) -> None:
    """Refuse a group without a record in the log.

    Raises:
        RequestError: no record of one of these groups; names similar ones.
    """
    known = topic.group_names()
    for group in wanted or ():
        if group not in known:
            raise RequestError(f"no record of group {group!r} is here", remedy=near_by(group, known))

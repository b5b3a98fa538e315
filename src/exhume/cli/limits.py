"""Options that every command takes: the limits for hostile evidence, and `--debug`. `exhume --help` shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from typer.core import TyperOption

from exhume.errors import RequestError

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
#: Less does not suffice for the modules of exhume.
_LEAST_MEMORY_BYTES = 256 * 2**20


@dataclass(slots=True)
class Wanted:
    """What the options of this call say."""

    is_debug: bool = False


WANTED = Wanted()


def parse_size(text: str) -> int:
    """Parse a size: a number of bytes, or of K, M, G or T (powers of 1024), such as 2G.

    Raises:
        RequestError: the text is none.
    """
    number, unit = text.strip().upper().removesuffix("B").removesuffix("I"), ""
    if number[-1:] in _UNITS:
        number, unit = number[:-1], number[-1:]
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise RequestError(f"{text!r} is not a size", remedy="Write a number of bytes, such as 2000000000, or 512M, or 2G")
    return int(number) * _UNITS[unit]


def _limit_memory(_context: Any, _option: Any, text: str | None) -> None:
    if text is None:
        return
    from exhume.codecs.limits import limit_memory

    size_bytes = parse_size(text)
    if size_bytes < _LEAST_MEMORY_BYTES:
        raise RequestError(f"--memory-limit {text} is too little", remedy="exhume itself needs 256M; a large log needs more")
    limit_memory(size_bytes)


def _set_ratio(_context: Any, _option: Any, ratio: int | None) -> None:
    if ratio is not None:
        from exhume.codecs.limits import LIMITS

        LIMITS.unpack_ratio = ratio


def _set_debug(_context: Any, _option: Any, is_debug: bool) -> None:
    if is_debug:
        WANTED.is_debug = True


def add_to(command: Any) -> None:
    """Add the options to a command and to each of its commands; only the first shows them in its help."""
    for number, each in enumerate(_with_commands(command)):
        each.params += [
            _option("--memory-limit", _limit_memory, number, metavar="SIZE", help=_MEMORY_HELP),
            _option("--unpack-ratio", _set_ratio, number, type=int, metavar="N", help=_RATIO_HELP),
            _option("--debug", _set_debug, number, is_flag=True, default=False, help="Show the traceback of an unexpected error."),
        ]


_MEMORY_HELP = "The most memory to take, such as 2G; mapped files do not count.  [default: 3/4 of the machine]"
_RATIO_HELP = "An archive may unfold to 4 GiB and N times its own size.  [default: 200]"


def _with_commands(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _with_commands(each)


def _option(name: str, callback: Callable[..., None], number: int, **options: Any) -> TyperOption:
    return TyperOption(param_decls=[name], callback=callback, expose_value=False, hidden=number > 0, is_eager=True, **options)

"""Names that would harm a terminal, a spreadsheet or a path."""

NAMES = [
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "line\nbreak\r\tand tab",
    "nul\x00",
    "pay\u202etxt.exe",
    "\u2066isolated\u2069",
    "zero\u200bwidth",
    "[red]markup[/red]",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    'comma, "quote"',
    '{"json": 1}',
    r"\x1b[31m",
    "",
    "\ue000\U000e0041",
    "消費者 été",
]

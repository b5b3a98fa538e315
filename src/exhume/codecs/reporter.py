"""Findings about files: each says which log directory and which offsets partition it is about."""

from __future__ import annotations

from dataclasses import dataclass

from exhume.findings import Finding, Findings, Severity


@dataclass(frozen=True, slots=True)
class Reporter:
    """Adds findings about the files of one log directory (`replica`), or of one offsets partition in it."""

    findings: Findings
    replica: str
    offsets_partition: int | None = None

    def info(self, code: str, path: str, sentence: str, *, remedy: str | None = None) -> None:
        """Something to know; the answer does not suffer from it."""
        self._add(code, path, sentence, "info", remedy, is_damage=False)

    def warn(self, code: str, path: str, sentence: str, *, remedy: str | None = None, is_damage: bool = False) -> None:
        """Something to look at. `is_damage`: evidence is missing from the answer because of it."""
        self._add(code, path, sentence, "warn", remedy, is_damage=is_damage)

    def _add(self, code: str, path: str, sentence: str, severity: Severity, remedy: str | None, *, is_damage: bool) -> None:
        finding = Finding(
            code=code,
            severity=severity,
            replica=self.replica,
            offsets_partition=self.offsets_partition,
            path=path,
            sentence=sentence,
            remedy=remedy,
            is_damage=is_damage,
        )
        self.findings.add(finding)

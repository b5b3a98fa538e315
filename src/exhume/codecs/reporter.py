"""Findings about files: each names its log directory and its offsets partition."""

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
        """Add a finding that does not affect the answer."""
        self._add(code, path, sentence, "info", remedy)

    def warn(self, code: str, path: str, sentence: str, *, remedy: str | None = None) -> None:
        """Add a finding to check; the answer is complete even so."""
        self._add(code, path, sentence, "warn", remedy)

    def _add(self, code: str, path: str, sentence: str, severity: Severity, remedy: str | None) -> None:
        finding = Finding(
            code=code,
            severity=severity,
            replica=self.replica,
            offsets_partition=self.offsets_partition,
            path=path,
            sentence=sentence,
            remedy=remedy,
        )
        self.findings.add(finding)

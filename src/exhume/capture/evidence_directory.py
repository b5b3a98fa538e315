"""An evidence directory while it is written: one recorder at a time, small files written whole, the manifest last."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from exhume.capture.recorded_partition import sync_directory, write_atomically
from exhume.codecs.evidence_files import EVIDENCE_MANIFEST, LAYOUT_VERSION
from exhume.codecs.file_names import HIGH_WATERMARKS, LOG_STARTS, META_PROPERTIES, OFFSETS_TOPIC
from exhume.codecs.volumes import reason
from exhume.errors import EvidenceError, RequestError

_LOCK = ".exhume-capture.lock"


class EvidenceDirectory:
    """The directory of a capture. Use it in a `with` statement; it is locked meanwhile.

    `earlier` is the manifest of an earlier capture into the same directory; empty for a new one.

    Raises:
        RequestError: the directory has files that no capture wrote, or another capture writes into it.
        EvidenceError: it cannot be made or read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hashes: dict[str, tuple[int, str]] = {}
        try:
            root.mkdir(parents=True, exist_ok=True)
            names = {path.name for path in root.iterdir()} - {_LOCK}
            self._lock = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise EvidenceError(f"no evidence directory can be made: {reason(error)}", path=str(root)) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise RequestError(f"{root}: another exhume capture writes into this directory", remedy="Choose another --output-dir") from None
        self.earlier: Mapping[str, Any] = self._read_manifest(names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._lock)

    def _read_manifest(self, names: set[str]) -> Mapping[str, Any]:
        if EVIDENCE_MANIFEST not in names:
            # A capture that was killed at once has only begun.
            if names - {META_PROPERTIES, f"{EVIDENCE_MANIFEST}.tmp", f"{META_PROPERTIES}.tmp"}:
                os.close(self._lock)
                raise RequestError(f"{self.root}: the directory has files, and no capture wrote them", remedy="Choose an empty directory")
            return {}
        try:
            manifest = json.loads((self.root / EVIDENCE_MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise EvidenceError(
                f"cannot be read: {error}", path=str(self.root / EVIDENCE_MANIFEST), remedy="Choose another --output-dir"
            ) from error
        if not isinstance(manifest, dict) or manifest.get("exhume_capture") != LAYOUT_VERSION:
            raise RequestError(f"{self.root}: another version of exhume wrote this directory", remedy="Choose another --output-dir")
        return manifest

    def require_same(self, name: str, value: str | None) -> None:
        """Refuse to add records of another cluster, or of a topic that was made again.

        Raises:
            RequestError: the earlier capture has another value.
        """
        known = self.earlier.get(name)
        if known is not None and value is not None and known != value:
            message = f"{self.root}: the directory has records of {name} {known}, and this is {name} {value}"
            raise RequestError(message, remedy="Choose another --output-dir")

    def earlier_digests(self) -> dict[str, tuple[int, str]]:
        """Size and SHA-256 of each file, by path, as the earlier manifest has them."""
        rows = self.earlier.get("files", [])
        return {row["path"]: (row["size_bytes"], row["sha256"]) for row in rows}

    def write_identity(self, cluster_id: str | None) -> None:
        """Write `meta.properties`, without a broker id: the records come from several brokers."""
        lines = ["# Written by exhume capture", "version=0"]
        if cluster_id is not None:
            lines.append(f"cluster.id={_escaped(cluster_id)}")
        self.write(META_PROPERTIES, "\n".join(lines) + "\n")

    def write_checkpoints(self, high_watermarks: Mapping[int, int], log_starts: Mapping[int, int]) -> None:
        """Write high watermarks and log start offsets by offsets partition, as a broker does."""
        for name, offsets in ((HIGH_WATERMARKS, high_watermarks), (LOG_STARTS, log_starts)):
            lines = [f"{OFFSETS_TOPIC} {number} {offset}\n" for number, offset in sorted(offsets.items())]
            self.write(name, f"0\n{len(lines)}\n{''.join(lines)}")

    def write(self, name: str, text: str) -> None:
        """Write a small file of the root."""
        write_atomically(self.root / name, text)
        data = text.encode()
        self._hashes[name] = (len(data), hashlib.sha256(data).hexdigest())

    def write_manifest(self, manifest: Mapping[str, Any], files: list[dict[str, object]]) -> None:
        """Write the manifest, after everything that it lists."""
        kept = {row["path"]: row for row in self.earlier.get("files", []) if "/" not in row["path"] and (self.root / row["path"]).exists()}
        small = kept | {name: {"path": name, "size_bytes": size, "sha256": digest} for name, (size, digest) in self._hashes.items()}
        content = {"exhume_capture": LAYOUT_VERSION, **manifest, "files": [*(small[name] for name in sorted(small)), *files]}
        write_atomically(self.root / EVIDENCE_MANIFEST, json.dumps(content, indent=1, ensure_ascii=True) + "\n")
        sync_directory(self.root)


def _escaped(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: f"\\u{ord(match[0]) & 0xFFFF:04x}", text)

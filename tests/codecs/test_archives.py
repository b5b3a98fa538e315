"""Archives: read in every form, never trusted, and used up to where they break."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
import zstandard

from exhume.codecs import archives, limits, mapping
from exhume.codecs.archives import ArchiveLimits, ArchiveVolume
from exhume.codecs.volumes import Entry
from exhume.errors import EvidenceError, RequestError

SEGMENT = "data/__consumer_offsets-0/00000000000000000000.log"
NEXT_SEGMENT = "data/__consumer_offsets-0/00000000000000000100.log"
# Compresses badly, so that a cut falls into it.
CONTENT = bytes(value * value % 251 for value in range(20_000)) + os.urandom(40_000)

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": gzip.compress,
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
    "tar.zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


def member(name: str, content: bytes = CONTENT, *, kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mtime = kind, link, 1_600_000_000
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def tar(*members: tuple[tarfile.TarInfo, bytes], tar_format: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.TarFile(fileobj=buffer, mode="w", format=tar_format) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def opened(tmp_path: Path, content: bytes, limits: ArchiveLimits | None = None) -> ArchiveVolume:
    path = tmp_path / "evidence.tar"
    path.write_bytes(content)
    return ArchiveVolume(path, tmp_path, limits)


def files(volume: ArchiveVolume, directory: str = "") -> list[Entry]:
    """Every file of the volume, by walking it as a reader would."""
    found: list[Entry] = []
    for entry in volume.entries(directory):
        found += files(volume, entry.path) if entry.is_directory else [entry]
    return found


def codes(volume: ArchiveVolume) -> list[str]:
    return [finding.code for finding in volume.findings]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_tar_is_read_under_every_compression(tmp_path: Path, compression: str) -> None:
    volume = opened(tmp_path, COMPRESSIONS[compression](tar(member(SEGMENT), member(NEXT_SEGMENT, b""))))

    assert [(entry.path, entry.size_bytes, entry.mtime_ms) for entry in files(volume)] == [
        (SEGMENT, len(CONTENT), 1_600_000_000_000),
        (NEXT_SEGMENT, 0, 1_600_000_000_000),
    ]
    assert bytes(volume.open(SEGMENT)) == CONTENT
    assert bytes(volume.open(NEXT_SEGMENT)) == b""
    assert codes(volume) == []


@pytest.mark.parametrize("tar_format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["ustar", "gnu", "pax"])
def test_long_names_are_read_in_every_format_of_tar(tmp_path: Path, tar_format: int) -> None:
    name = f"{'deep/' * 20}__consumer_offsets-0/00000000000000000000.log"

    assert [entry.path for entry in files(opened(tmp_path, tar(member(name), tar_format=tar_format)))] == [name]


def test_a_zip_is_read_and_its_times_taken_as_utc(tmp_path: Path) -> None:
    volume = opened(tmp_path, zipped((zipfile.ZipInfo(SEGMENT, (2020, 9, 13, 12, 26, 40)), CONTENT)))

    assert [(entry.path, entry.mtime_ms) for entry in files(volume)] == [(SEGMENT, 1_600_000_000_000)]
    assert bytes(volume.open(SEGMENT)) == CONTENT
    assert codes(volume) == []


def test_a_sparse_member_has_its_holes(tmp_path: Path) -> None:
    # A header of the old GNU form by hand: 4096 bytes, of which only the last 512 are stored.
    info = tarfile.TarInfo("__consumer_offsets-0/00000000000000000000.index")
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"00000001000\0"
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:410] = b"00000007000\0" + b"00000001000\0"
    header[483:495] = b"00000010000\0"
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    volume = opened(tmp_path, bytes(header) + b"x" * 512 + bytes(1024))

    [entry] = files(volume)
    assert bytes(volume.open(entry.path)) == bytes(3584) + b"x" * 512


def test_paths_are_shown_with_the_archive_in_front(tmp_path: Path) -> None:
    assert opened(tmp_path, tar(member(SEGMENT))).shown(SEGMENT) == f"{tmp_path}/evidence.tar!{SEGMENT}"


def test_buffers_are_read_only_and_outlive_the_volume(tmp_path: Path) -> None:
    volume = opened(tmp_path, tar(member(SEGMENT)))
    buffer = volume.open(SEGMENT)

    volume.close()

    assert buffer.readonly
    assert bytes(buffer) == CONTENT
    with pytest.raises(EvidenceError, match="closed"):
        volume.open(SEGMENT)


def test_nothing_is_left_in_the_directory_for_temporary_files(tmp_path: Path) -> None:
    volume = opened(tmp_path, tar(member(SEGMENT)))

    assert [path.name for path in tmp_path.iterdir()] == ["evidence.tar"]
    volume.close()


def test_segments_of_other_topics_are_passed_over(tmp_path: Path) -> None:
    volume = opened(
        tmp_path, tar(member("data/orders-0/00000000000000000000.log"), member("data/orders-0/partition.metadata", b"x"), member(SEGMENT))
    )

    assert [entry.path for entry in files(volume)] == [SEGMENT, "data/orders-0/partition.metadata"]
    assert codes(volume) == []


@pytest.mark.parametrize("pack", [lambda name: tar(member(name)), lambda name: zipped((name, CONTENT))], ids=["tar", "zip"])
@pytest.mark.parametrize("name", [f"../../{SEGMENT}", f"data/../{SEGMENT}", f"/..{SEGMENT[4:]}", "a/" * 100 + SEGMENT])
def test_a_path_that_leads_out_is_left_out_and_nothing_is_written(tmp_path: Path, pack: Callable[[str], bytes], name: str) -> None:
    (tmp_path / "inner").mkdir()
    volume = opened(tmp_path / "inner", pack(name))

    assert files(volume) == []
    assert codes(volume) == ["hostile_member"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["evidence.tar", "inner"]


@pytest.mark.parametrize("pack", [lambda name: tar(member(name)), lambda name: zipped((name, CONTENT))], ids=["tar", "zip"])
def test_an_absolute_path_is_read_as_if_it_began_at_the_archive(tmp_path: Path, pack: Callable[[str], bytes]) -> None:
    volume = opened(tmp_path, pack(f"/{SEGMENT}"))

    assert [entry.path for entry in files(volume)] == [SEGMENT]


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE], ids=["symlink", "hard link", "pipe", "device"]
)
def test_links_and_devices_in_a_tar_are_left_out_and_named(tmp_path: Path, kind: bytes) -> None:
    volume = opened(tmp_path, tar(member(SEGMENT, kind=kind, link="/etc/passwd"), member(NEXT_SEGMENT)))

    assert [entry.path for entry in files(volume)] == [NEXT_SEGMENT]
    assert codes(volume) == ["special_member"]
    assert volume.findings.has_damage


def test_a_link_in_place_of_a_partition_directory_is_named(tmp_path: Path) -> None:
    assert codes(opened(tmp_path, tar(member("data/__consumer_offsets-0", kind=tarfile.SYMTYPE, link="/"), member(SEGMENT)))) == [
        "special_member"
    ]


def test_links_that_cannot_be_evidence_are_not_worth_a_word(tmp_path: Path) -> None:
    assert codes(opened(tmp_path, tar(member("bin/sh", kind=tarfile.SYMTYPE, link="bash"), member(SEGMENT)))) == []


def test_a_symbolic_link_in_a_zip_is_left_out_and_named(tmp_path: Path) -> None:
    link = zipfile.ZipInfo(SEGMENT)
    link.external_attr = 0o120777 << 16

    volume = opened(tmp_path, zipped((link, b"/etc/passwd")))

    assert files(volume) == []
    assert codes(volume) == ["special_member"]


def test_a_member_that_claims_too_many_bytes_is_left_out(tmp_path: Path) -> None:
    forged = tarfile.TarInfo(SEGMENT)
    forged.size = 2**40

    volume = opened(tmp_path, forged.tobuf() + bytes(1024))

    assert files(volume) == []
    assert codes(volume)[0] == "member_too_large"


def test_the_largest_segment_is_not_too_large() -> None:
    assert ArchiveLimits().member_bytes == 2**31


@pytest.mark.parametrize(
    "bomb",
    [gzip.compress(tar(member(SEGMENT, bytes(10_000_000)))), zipped((SEGMENT, bytes(10_000_000)))],
    ids=["tar.gz", "zip"],
)
def test_a_bomb_is_not_unpacked(tmp_path: Path, bomb: bytes) -> None:
    assert len(bomb) < 20_000

    volume = opened(tmp_path, bomb, ArchiveLimits(member_bytes=1_000_000))

    assert files(volume) == []
    assert codes(volume) == ["member_too_large"]


def test_a_zip_that_understates_its_member_gives_no_more_than_it_said(tmp_path: Path) -> None:
    bomb = bytearray(zipped((SEGMENT, bytes(1_000_000))))
    directory = bomb.rindex(b"PK\1\2")
    bomb[directory + 24 : directory + 28] = (1000).to_bytes(4, "little")

    volume = opened(tmp_path, bytes(bomb))

    assert [entry.size_bytes for entry in files(volume)] == [1000]
    assert volume.findings.has_damage


def test_zeros_become_a_hole_in_the_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room: list[int] = []
    real = mapping.map_descriptor

    def watch(descriptor: int, size_bytes: int) -> memoryview:
        room.append(os.fstat(descriptor).st_blocks * 512)
        return real(descriptor, size_bytes)

    monkeypatch.setattr(archives, "map_descriptor", watch)
    volume = opened(tmp_path, gzip.compress(tar(member(SEGMENT, bytes(10_000_000)))))

    assert [entry.size_bytes for entry in files(volume)] == [10_000_000]
    assert not any(volume.open(SEGMENT))
    assert room[-1] < 100_000


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (ArchiveLimits(members=1), "more than 1 members"),
        (ArchiveLimits(kept_bytes=len(CONTENT) + 1), f"more than {len(CONTENT) + 1} bytes"),
    ],
    ids=["members", "bytes"],
)
def test_behind_a_limit_the_rest_is_left_out_and_the_start_is_used(tmp_path: Path, limits: ArchiveLimits, reason: str) -> None:
    volume = opened(tmp_path, tar(member(SEGMENT), member(NEXT_SEGMENT)), limits)

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    [finding] = volume.findings
    assert (finding.code, finding.is_damage) == ("archive_limit", True)
    assert reason in finding.sentence
    assert finding.remedy


def test_what_nobody_needs_counts_against_the_limit_of_what_is_unpacked(tmp_path: Path) -> None:
    bomb = gzip.compress(tar(member(SEGMENT), member("orders-0/00000000000000000000.log", bytes(10_000_000)), member(NEXT_SEGMENT)))

    volume = opened(tmp_path, bomb, ArchiveLimits(unpacked_bytes=1_000_000, ratio=1))

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    assert codes(volume) == ["archive_limit"]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_of_a_cut_archive_everything_before_the_cut_is_used(tmp_path: Path, compression: str) -> None:
    # An end-of-stream mark of its own for each member keeps what was flushed readable under every compression.
    whole = tar(member(SEGMENT), member(NEXT_SEGMENT))
    at = whole.rindex(NEXT_SEGMENT.encode()) + 512
    compress = COMPRESSIONS[compression]
    packed = compress(whole[:at]) + compress(whole[at:])

    volume = opened(tmp_path, packed[: len(compress(whole[:at])) + 100])

    assert bytes(volume.open(SEGMENT)) == CONTENT
    assert "archive_damaged" in codes(volume)
    assert volume.findings.has_damage


def test_of_a_member_that_is_cut_the_first_bytes_are_used(tmp_path: Path) -> None:
    whole = tar(member(SEGMENT))

    volume = opened(tmp_path, whole[: 512 + 30_000])

    assert bytes(volume.open(SEGMENT)) == CONTENT[:30_000]
    assert f"only 30000 of the {len(CONTENT)} bytes" in next(iter(volume.findings)).sentence


def test_a_tar_that_ends_without_its_mark_is_named_and_used(tmp_path: Path) -> None:
    info, content = member(SEGMENT, bytes(512))

    volume = opened(tmp_path, info.tobuf() + content)

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    assert [finding.sentence for finding in volume.findings] == ["the archive is cut or damaged after this member: its end mark is missing"]


def test_a_broken_header_between_members_is_not_taken_for_the_end(tmp_path: Path) -> None:
    whole = bytearray(tar(member(SEGMENT), member(NEXT_SEGMENT)))
    whole[whole.rindex(NEXT_SEGMENT.encode())] ^= 1

    volume = opened(tmp_path, bytes(whole))

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    assert codes(volume) == ["archive_damaged"]


def test_a_flipped_byte_in_a_zip_is_named_and_the_bytes_are_used(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(SEGMENT, CONTENT)
        archive.writestr(NEXT_SEGMENT, b"good")
    packed = bytearray(buffer.getvalue())
    packed[packed.index(CONTENT) + 50_000] ^= 1

    volume = opened(tmp_path, bytes(packed))

    assert sum(a != b for a, b in zip(volume.open(SEGMENT), CONTENT, strict=True)) == 1
    assert bytes(volume.open(NEXT_SEGMENT)) == b"good"
    assert [(finding.code, finding.path) for finding in volume.findings] == [("archive_damaged", f"{tmp_path}/evidence.tar!{SEGMENT}")]


def test_an_encrypted_member_of_a_zip_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    packed = bytearray(zipped((SEGMENT, CONTENT), (NEXT_SEGMENT, b"good")))
    for signature, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        packed[packed.index(signature) + at] |= 1

    volume = opened(tmp_path, bytes(packed))

    assert [entry.path for entry in files(volume)] == [NEXT_SEGMENT]
    assert codes(volume) == ["archive_damaged"]


def test_a_zip_without_its_list_of_members_is_an_evidence_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="zip -FF"):
        opened(tmp_path, zipped((SEGMENT, CONTENT))[:1000])


@pytest.mark.parametrize("content", [gzip.compress(CONTENT), gzip.compress(b""), lzma.compress(b"short")], ids=["log", "nothing", "short"])
def test_a_compressed_file_that_is_no_tar_must_be_unpacked_first(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(EvidenceError, match="unpack it first"):
        opened(tmp_path, content)


def test_anything_else_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="not an archive"):
        opened(tmp_path, b"not an archive")


@pytest.mark.parametrize(("second", "says"), [(CONTENT, "with the same bytes"), (b"other", "the first is read")], ids=["same", "other"])
def test_of_two_members_of_one_name_the_first_is_read(tmp_path: Path, second: bytes, says: str) -> None:
    volume = opened(tmp_path, tar(member(SEGMENT), member(f"./{SEGMENT}", second)))

    assert bytes(volume.open(SEGMENT)) == CONTENT
    [finding] = volume.findings
    assert finding.code == "duplicate_segment"
    assert says in finding.sentence


def test_a_header_of_many_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    forged = tarfile.TarInfo("x")
    forged.type, forged.size = tarfile.XHDTYPE, 2**32

    volume = opened(tmp_path, tar(member(SEGMENT))[: 512 + 60_416] + forged.tobuf() + bytes(10_000))

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    assert "a header of more than" in next(iter(volume.findings)).sentence


def test_headers_nested_without_end_are_damage(tmp_path: Path) -> None:
    nested = tarfile.TarInfo("x")
    nested.type, nested.size = tarfile.XHDTYPE, 0

    volume = opened(tmp_path, tar(member(SEGMENT, b""))[:512] + nested.tobuf() * 5_000)

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    assert volume.findings.has_damage


def test_a_member_of_negative_size_does_not_lead_back(tmp_path: Path) -> None:
    header = bytearray(tarfile.TarInfo("orders").tobuf())
    header[124:136] = b"\xff" * 10 + b"\xf8\x00"
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()

    volume = opened(tmp_path, tar(member(SEGMENT, b""))[:512] + bytes(header) * 3)

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    assert "begins before the end of the one before it" in next(iter(volume.findings)).sentence


def test_names_that_are_no_text_are_read_and_shown_as_text(tmp_path: Path) -> None:
    name = b"caf\xe9/__consumer_offsets-0/00000000000000000000.log".decode("utf-8", "surrogateescape")

    volume = opened(tmp_path, tar(member(name), tar_format=tarfile.GNU_FORMAT))

    [entry] = files(volume)
    assert bytes(volume.open(entry.path)) == CONTENT
    assert "caf\\xe9/" in volume.shown(entry.path)


def test_no_directory_for_temporary_files_is_a_request_error(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar(member(SEGMENT)))

    with pytest.raises(RequestError, match="--temp-dir"):
        ArchiveVolume(tmp_path / "a.tar", tmp_path / "missing")


def test_a_full_disk_is_an_evidence_error_that_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())

    with pytest.raises(EvidenceError, match=r"no space left.*--temp-dir"):
        opened(tmp_path, tar(member(SEGMENT)))


def test_a_tar_changed_at_any_byte_gives_members_findings_or_an_evidence_error(tmp_path: Path) -> None:
    whole = tar(member(SEGMENT, b"x" * 600), member("é" * 120, b""), member(NEXT_SEGMENT, b"y"))
    path = tmp_path / "evidence.tar"
    for position in [*range(512), *range(1536, len(whole) - 8192)][::3]:
        for value in (0x00, 0xFF, whole[position] ^ 1):
            path.write_bytes(whole[:position] + bytes((value,)) + whole[position + 1 :])
            try:
                volume = ArchiveVolume(path, tmp_path)
            except EvidenceError:
                continue
            for entry in files(volume):
                assert len(volume.open(entry.path)) == entry.size_bytes


def test_a_member_of_a_zip_without_a_name_is_passed_over(tmp_path: Path) -> None:
    packed = zipped((SEGMENT, CONTENT)).replace(SEGMENT.encode(), b"\0" * len(SEGMENT))

    assert files(opened(tmp_path, packed)) == []


def test_directories_without_evidence_cost_nothing(tmp_path: Path) -> None:
    deep = [member(f"{number}/{'x/' * 40}", b"", kind=tarfile.DIRTYPE) for number in range(2000)]

    volume = opened(tmp_path, tar(*deep, member(SEGMENT)))

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    assert len(volume._directories) == 3


def test_directories_of_evidence_are_limited(tmp_path: Path) -> None:
    many = [member(f"{number}/{'x/' * 40}meta.properties") for number in range(20)]

    volume = opened(tmp_path, tar(member(SEGMENT), *many), ArchiveLimits(directories=100))

    assert SEGMENT in [entry.path for entry in files(volume)]
    assert len(volume._directories) < 150
    assert codes(volume) == ["archive_limit"]


def test_the_work_is_limited_by_the_size_of_the_archive_and_may_be_raised(tmp_path: Path) -> None:
    bomb = bz2.compress(tar(member(SEGMENT, b"x" * 10), member("junk", bytes(30_000_000)), member(NEXT_SEGMENT, b"y" * 10)))

    stopped = opened(tmp_path, bomb, ArchiveLimits(unpacked_bytes=1_000_000, ratio=1000))
    whole = opened(tmp_path, bomb, ArchiveLimits(unpacked_bytes=1_000_000, ratio=1_000_000))

    assert [entry.path for entry in files(stopped)] == [SEGMENT]
    (finding,) = stopped.findings
    assert "1000 times its own size" in finding.sentence
    assert "--unpack-ratio" in str(finding.remedy)
    assert finding.is_damage
    assert [entry.path for entry in files(whole)] == [SEGMENT, NEXT_SEGMENT]


def test_the_default_ratio_is_that_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.LIMITS, "unpack_ratio", 7)

    assert ArchiveLimits().ratio == 7


def listed_again(content: bytes, times: int) -> bytes:
    """This zip, whose list names its only member so many times."""
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry, tail = content[start:end], bytearray(content[end:])
    struct.pack_into("<HHI", tail, 8, times, times, len(entry) * times)
    return content[:start] + entry * times + bytes(tail)


def test_a_member_that_a_zip_lists_many_times_is_read_once(tmp_path: Path) -> None:
    packed = listed_again(zipped((SEGMENT, CONTENT)), 400)

    with patch.object(zipfile.ZipFile, "open", autospec=True, side_effect=zipfile.ZipFile.open) as opens:
        volume = opened(tmp_path, packed)

    assert opens.call_count == 1
    assert bytes(volume.open(SEGMENT)) == CONTENT
    assert [(each.code, each.is_damage) for each in volume.findings] == [("duplicate_segment", False)]


def test_members_of_a_zip_count_before_they_are_unpacked(tmp_path: Path) -> None:
    packed = zipped((SEGMENT, bytes(100_000)), (NEXT_SEGMENT, bytes(9_000_000)))

    volume = opened(tmp_path, packed, ArchiveLimits(unpacked_bytes=1_000_000, ratio=1))

    assert [entry.path for entry in files(volume)] == [SEGMENT]
    assert codes(volume) == ["archive_limit"]


@pytest.mark.parametrize("file_first", [True, False])
def test_a_file_and_a_directory_of_one_name_cost_the_file(tmp_path: Path, file_first: bool) -> None:
    both = [member(SEGMENT), member(f"{SEGMENT}/00000000000000000001.log")]

    volume = opened(tmp_path, tar(*(both if file_first else both[::-1]), member(NEXT_SEGMENT)))

    assert NEXT_SEGMENT in [entry.path for entry in files(volume)]
    (finding,) = volume.findings
    assert (finding.code, finding.is_damage) == ("hostile_member", True)
    assert str(finding.path).endswith(SEGMENT)


def test_a_zip_with_a_hostile_header_of_a_member_is_named(tmp_path: Path) -> None:
    # The entry of the list says that the member begins before the file.
    content = bytearray(zipped((SEGMENT, CONTENT)))
    struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 42, 0xFFFFFFF0)

    assert codes(opened(tmp_path, bytes(content))) == ["archive_damaged"]

"""Reading bytes: what can go wrong before a text is even looked at."""
from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from irscope.source import UserError, files
from irscope.source.files import read_bytes


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_bytes(b"HloModule m")
    assert read_bytes(tmp_path / "a.hlo") == b"HloModule m"


def test_gzip_is_unpacked_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_bytes(gzip.compress(b"HloModule m\n" * 100_000) + gzip.compress(b"the end"))
    assert read_bytes(tmp_path / "a.hlo") == b"HloModule m\n" * 100_000 + b"the end"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"HloModule m"), isatty=lambda: False))
    assert read_bytes("-") == b"HloModule m"


@pytest.mark.parametrize(("name", "message", "help"), [
    ("modle.hlo", "no such file", "did you mean {folder}/model.hlo?"),
    ("nowhere/model.hlo", "no such file", "there is no folder {folder}/nowhere"),
    ("empty", "is empty", "was the program"),
    ("blank", "contains only blanks", "was the program"),
    ("sub", "is a folder", "such as {folder}/sub/x.hlo"),
    ("dump", "is a folder", "give one of the 7 files in it, such as {folder}/dump/module_0002.jit_f.cpu_after_optimizations.txt"),
    ("dump", "is a folder", "irscope show {folder}/dump"),
    ("lost", "is a link to old/m.hlo, which is not there", ""),
    ("cut.gz", "cut off in the middle", "copy it again"),
    ("broken.gz", "damaged", "gzip -t"),
    ("a\0b", "NUL", ""),
])
def test_what_cannot_be_read_is_told_with_what_to_do(name: str, message: str, help: str, tmp_path: Path) -> None:
    (tmp_path / "model.hlo").write_bytes(b"HloModule m")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "blank").write_bytes(b" \n\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.hlo").write_bytes(b"HloModule m")
    (tmp_path / "lost").symlink_to("old/m.hlo")
    (tmp_path / "dump").mkdir()
    for made, size in {"module_0000.jit_g.cpu_after_optimizations.txt": 9, "module_0002.jit_f.cpu_after_optimizations.txt": 99,
                       "module_0002.jit_f.before_optimizations.txt": 200, "module_0000.jit_g.before_optimizations.dot": 500,
                       "module_0002.jit_f.cpu_after_optimizations-buffer-assignment.txt": 900, "module_0002.jit_f.debug_options": 800,
                       "module_0002.jit_f.cpu_after_optimizations.hlo.pb": 400}.items():
        (tmp_path / "dump" / made).write_bytes(b"x" * size)
    packed = gzip.compress(os.urandom(4096))
    (tmp_path / "cut.gz").write_bytes(packed[:2000])
    (tmp_path / "broken.gz").write_bytes(packed[:12] + b"\xff" * 200)
    with pytest.raises(UserError) as caught:
        read_bytes(f"{tmp_path}/{name}")
    assert message in caught.value.message
    assert help.format(folder=tmp_path) in caught.value.help


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.hlo"
    path.write_bytes(b"HloModule m")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # root may read everything, so the refusal is played
    with pytest.raises(UserError, match="permission denied"):
        read_bytes(path)


def test_a_small_gzip_cannot_ask_for_all_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\0" * (8 << 20)))
    with pytest.raises(UserError, match="unpacks to more than 2 MiB"):
        read_bytes(path, limit=2 << 20)


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.hlo"
    path.write_bytes(b"x" * (2 << 20))
    with pytest.raises(UserError, match="larger than 1 MiB"):
        read_bytes(path, limit=1 << 20)


def test_a_large_text_is_the_same_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGE", 8)
    monkeypatch.setattr(files, "CHUNK", 5)
    path = tmp_path / "m.hlo"
    text = "HloModule m // äöü €\r\nENTRY e {}\n" * 9
    path.write_text(text, encoding="utf-8", newline="")
    assert files.read_large_text(str(path)) == text
    path.write_bytes(b"abc\xff\xfedefghij" * 3)
    assert files.read_large_text(str(path)) == path.read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize("data", [b"\x1f\x8b12345678", b"abc\0defghij", b"\xef\xbb\xbfHloModule m", b"short"])
def test_what_is_small_or_no_plain_text_is_left_to_the_other_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(files, "LARGE", 8)
    path = tmp_path / "m.hlo"
    path.write_bytes(data)
    assert files.read_large_text(str(path)) is None
    assert files.read_large_text(str(tmp_path / "missing")) is None

"""Output files are whole or absent, and nothing that is no regular file is replaced by one."""
from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from irscope.source import UserError
from irscope.source.writing import writing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="devices, pipes and links are those of POSIX")


def write(path: str | Path, data: bytes = b"new", inputs: tuple[str, ...] = ()) -> None:
    with writing(str(path), inputs) as stream:
        stream.write(data)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with pytest.raises(ZeroDivisionError), writing(str(path)) as stream:
        stream.write(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x"]
    write(path)
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o640 and os.listdir(tmp_path) == ["x"]


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    target, link, second = tmp_path / "below" / "target", tmp_path / "link", tmp_path / "second"
    target.write_bytes(b"old")
    link.symlink_to(Path("below") / "target")
    second.symlink_to("link")
    write(second)
    assert link.is_symlink() and second.is_symlink() and target.read_bytes() == b"new"
    target.unlink()
    write(link, b"again")
    assert link.is_symlink() and target.read_bytes() == b"again"


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_through(tmp_path: Path, linked: bool) -> None:
    pipe = name = tmp_path / "pipe"
    os.mkfifo(pipe)
    if linked:
        name = tmp_path / "link"
        name.symlink_to(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write(name, b"x" * 100_000)
    reader.join(10)
    assert got == [b"x" * 100_000] and stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_device_is_written_through(tmp_path: Path) -> None:
    """A node of our own where that is allowed: a fault must not destroy the machine's /dev/null."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        write(device)
    except PermissionError:
        device.unlink(missing_ok=True)
        device.symlink_to("/dev/null")
        write(device)
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_name_keeps_what_is_there(tmp_path: Path, name: str) -> None:
    """``irscope ... -o /dev/stdout >> file`` appends."""
    if not os.path.exists(name):
        pytest.skip(f"this system has no {name}")
    kept = tmp_path / "log"
    kept.write_bytes(b"before ")
    code = f"from irscope.source.writing import writing\nwith writing({name!r}) as s: s.write(b'after')"
    with open(kept, "ab") as stream:
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert kept.read_bytes() == b"before after"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"after"


def test_inputs_are_refused_by_any_name(tmp_path: Path) -> None:
    given, link = tmp_path / "given", tmp_path / "link"
    given.write_bytes(b"old")
    link.symlink_to(given)
    for path in (given, link, tmp_path / "." / "given"):
        with pytest.raises(UserError, match="is an input; it is not overwritten"):
            write(path, inputs=(str(given),))
    os.link(given, tmp_path / "hard")
    with pytest.raises(UserError, match="is an input"):
        write(tmp_path / "hard", inputs=(str(given),))
    assert given.read_bytes() == b"old"


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "absent" / "x", tmp_path):
        with pytest.raises(UserError, match="cannot be written"):
            write(path)
    with pytest.raises(UserError, match=r"cannot be written: No space left"):
        write("/dev/full" if os.path.exists("/dev/full") else tmp_path / "absent" / "x", b"x" * 100_000)


def test_a_file_in_a_folder_that_is_not_ours_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write to every folder, so the refusal is made by hand."""
    path = tmp_path / "x"
    path.write_bytes(b"old")
    make = tempfile.mkstemp

    def refuse(prefix: str, dir: str | None = None) -> tuple[int, str]:
        if dir == str(tmp_path):
            raise PermissionError(13, "Permission denied")
        return make(prefix=prefix, dir=dir)

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    write(path)
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["x"]
    with pytest.raises(UserError, match="cannot be written: Permission denied"):
        write(tmp_path / "y")


def test_a_file_that_is_mounted_by_itself_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def busy(source: str, target: str) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "replace", busy)
    write(path)
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["x"]


def test_a_descriptor_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write("/dev/fd/99999999999999999999")

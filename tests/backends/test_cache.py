"""The compilation cache executes nothing that somebody else could have put there, and nothing in it does harm."""
from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from irscope.backends import cache, llvm_compile
from irscope.backends.compile import compile_program
from irscope.backends.targets import Machine
from irscope.lower.program import Program
from tests.backends.running import executable
from tests.backends.test_programs import counting

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are those of POSIX")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds one entry, by name ``NAME``."""
    place = tmp_path / "kept"
    monkeypatch.setenv("IRSCOPE_CACHE", str(place))
    cache.write(NAME, b"code")
    assert cache.read(NAME) == b"code"
    return place


NAME, OTHER = cache.key("one"), cache.key("other")


def entry(place: Path, name: str = NAME) -> Path:
    return place / name[:2] / name


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a path belong to somebody else: by its owner where this user may change it, else by who this user is."""
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        stranger = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: stranger)


def test_folders_are_private(kept: Path) -> None:
    for folder in (kept, entry(kept).parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o722])
@pytest.mark.parametrize("part", ["folder", "subfolder", "file"])
def test_what_others_may_write_is_not_read(kept: Path, part: str, mode: int) -> None:
    path = {"folder": kept, "subfolder": entry(kept).parent, "file": entry(kept)}[part]
    path.chmod(mode)
    assert cache.read(NAME) is None
    path.chmod(0o700)
    assert cache.read(NAME) == b"code"


@pytest.mark.parametrize("part", ["folder", "subfolder", "file"])
def test_what_belongs_to_others_is_not_read(kept: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away({"folder": kept, "subfolder": entry(kept).parent, "file": entry(kept)}[part], monkeypatch)
    assert cache.read(NAME) is None
    if part == "folder":
        assert "belongs to user" in (cache.refusal() or "")
        cache.write(OTHER, b"more")
        assert not entry(kept, OTHER).exists()


def test_a_folder_that_others_may_write_is_not_written(kept: Path) -> None:
    kept.chmod(0o777)
    cache.write(OTHER, b"more")
    assert not entry(kept, OTHER).exists()
    assert cache.refusal() == f"the cache {kept} is not used: it can be written by other users"


def test_an_entry_of_another_key_does_not_count(kept: Path) -> None:
    entry(kept, OTHER).parent.mkdir(mode=0o700, exist_ok=True)
    entry(kept, OTHER).write_bytes(entry(kept).read_bytes())
    entry(kept, OTHER).chmod(0o600)
    assert cache.read(OTHER) is None


def test_links_and_pipes_do_no_harm(kept: Path, tmp_path: Path) -> None:
    place = entry(kept)
    target = tmp_path / "elsewhere"
    place.rename(target)
    place.symlink_to(target)
    assert cache.read(NAME) is None
    place.unlink()
    place.symlink_to("/dev/zero")
    assert cache.read(NAME) is None
    place.unlink()
    os.mkfifo(place)
    assert cache.read(NAME) is None
    place.unlink()
    place.mkdir()
    assert cache.read(NAME) is None
    cache.prune(kept, 0)
    assert place.is_dir()


def test_swapped_entries_are_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry replaced by the next one's content: nothing is taken from the cache, and the program is right."""
    monkeypatch.setenv("IRSCOPE_CACHE", str(tmp_path / "kept"))
    program: Program = counting()
    compile_program(program, llvm_compile.host())
    entries = sorted(path for path in (tmp_path / "kept").rglob("*") if path.is_file())
    contents = [path.read_bytes() for path in entries]
    for path, content in zip(entries, contents[1:] + contents[:1]):
        path.write_bytes(content)
    assert compile_program(program, llvm_compile.host()).from_cache == 0
    assert executable(program)(np.array([4], np.int32))[0][0] == 10


def test_without_a_folder_the_last_object_code_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program and the same one after a pass are compiled once, but where no cache is wanted."""
    monkeypatch.setenv("IRSCOPE_CACHE", "off")
    made: list[str] = []
    compiled = llvm_compile.object_code

    def counted(text: str, machine: Machine, speed: int = 2) -> bytes:
        made.append(text)
        return compiled(text, machine, speed)
    monkeypatch.setattr(llvm_compile, "object_code", counted)
    llvm_compile._kept_object_code.cache_clear()
    program, machine = counting(), llvm_compile.host()
    first = compile_program(program, machine)
    units = len(made)
    assert units and compile_program(program, machine).objects == first.objects and len(made) == units
    assert compile_program(program, machine, use_cache=False).objects == first.objects and len(made) == 2 * units
    monkeypatch.setattr(llvm_compile, "SHORT", 0)
    compile_program(program, machine)
    assert len(made) == 3 * units

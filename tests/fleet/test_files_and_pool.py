"""Finding dumps in folders, and asking about many files in several processes."""
from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from irscope.fleet.files import find_files, no_dump
from irscope.fleet.pool import map_files
from irscope.fleet.stats import stats_of, stats_of_file
from irscope.formats.neighbours import DUMP_HLO
from irscope.source import UserError

GOOD = "HloModule m\n\nENTRY main {\n  x = f32[2,3] parameter(0)\n  ROOT y = f32[2,3] negate(x)\n}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    for name, text in {"b.hlo": GOOD, "a.txt": GOOD, "notes.txt": "nothing of ours\n", "deep/c.hlo": "broken", "data.npz": "PK", ".hidden.hlo": GOOD,
                       "module_0001.jit_f.before_optimizations.txt": GOOD, "big.o": GOOD}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_folders_are_searched_and_named_files_taken_as_they_are(folder: Path) -> None:
    found = find_files([str(folder), str(folder / "notes.txt"), "-"])
    inside = [os.path.relpath(f, folder) for f in found.files[:-2]]
    assert inside == ["a.txt", "b.hlo", "module_0001.jit_f.before_optimizations.txt", "deep/c.hlo"]
    assert found.files[-2:] == [str(folder / "notes.txt"), "-"]
    assert {os.path.basename(f) for f in found.skipped} == {"notes.txt", "data.npz", "big.o"}


def test_what_is_no_file_on_a_disk_is_passed_by(folder: Path) -> None:
    os.mkfifo(folder / "pipe")  # reading it would wait for ever
    os.mkfifo(folder / "pipe.hlo")
    (folder / "gone.txt").symlink_to("nowhere")
    (folder / "round").symlink_to(".")
    found = find_files([str(folder)])
    assert len(found.files) == 4
    assert {os.path.basename(f) for f in found.skipped} == {"notes.txt", "data.npz", "big.o", "pipe", "pipe.hlo", "gone.txt"}


def test_texts_of_other_encodings_are_found(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        (tmp_path / f"{encoding}.txt").write_text(GOOD, encoding=encoding)
    assert len(find_files([str(tmp_path)]).files) == 3


def test_a_folder_without_dumps_is_told_what_it_holds(tmp_path: Path) -> None:
    def told() -> UserError:
        return no_dump([str(tmp_path)], find_files([str(tmp_path)]).skipped)

    assert (told().message, told().help) == (f"no dump in {tmp_path}, which holds no files", DUMP_HLO)
    (tmp_path / "notes.txt").write_text("nothing of ours")
    assert (told().message, told().help) == (f"no dump in {tmp_path}, beside 1 file that is none", "name a file to hear what is wrong with it")
    (tmp_path / "m.dot").write_text("digraph G {\n a -> b;\n}\n")
    assert told().message == f"no dump in {tmp_path}, beside 2 files that are none: m.dot is a graphviz .dot file"
    assert DUMP_HLO in told().help


def test_stats_of_one_file() -> None:
    record = stats_of_file("/nonexistent/x.hlo")
    assert record["ok"] is False
    assert record["error"] == "1:1: /nonexistent/x.hlo: no such file"


def test_stats_of_a_good_file(folder: Path) -> None:
    assert stats_of_file(str(folder / "b.hlo"), signature=True) == {
        "file": str(folder / "b.hlo"), "format": "hlo", "ok": True, "error": None, "graphs": 1, "nodes": 2, "ops": {"parameter": 1, "negate": 1},
        "parameters": 1, "parameter_bytes": 24, "flops": 6, "bytes": 48, "inputs": [{"name": "x", "dtype": "f32", "shape": [2, 3]}],
        "outputs": [{"name": "y", "dtype": "f32", "shape": [2, 3]}]}


def length_or_die(path: str) -> str:
    """What the processes of the next test run."""
    text = Path(path).read_text()
    if text == "die":
        os._exit(9)
    return f"{len(text)} {os.path.basename(path)}"


def died(path: str, why: str) -> str:
    return f"died {os.path.basename(path)}"


def test_a_file_that_kills_its_process_costs_no_other_file(tmp_path: Path) -> None:
    files = []
    for i in range(40):
        path = tmp_path / f"{i:02}"
        path.write_text("die" if i in (3, 21) else "x" * i)
        files.append(str(path))
    found = list(map_files(length_or_die, died, files, jobs=2))
    assert found == [f"died {i:02}" if i in (3, 21) else f"{i} {i:02}" for i in range(40)]


def length_or_be_killed(path: str) -> str:
    """What the processes of the next test run: some die over an innocent file, the first two times that it is read."""
    marks = Path(path).parent / "marks"
    for number in range(2):
        mark = marks / f"{os.path.basename(path)}.{number}"
        if Path(path).read_text() == "victim" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return length_or_die(path)


def test_a_file_whose_process_is_killed_from_outside_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    files = []
    for i in range(40):
        path = tmp_path / f"{i:02}"
        path.write_text("victim" if i % 13 == 5 else "die" if i == 21 else "x" * i)
        files.append(str(path))
    found = list(map_files(length_or_be_killed, died, files, jobs=2))
    assert found == ["died 21" if i == 21 else f"{6 if i % 13 == 5 else i} {i:02}" for i in range(40)]


def test_several_processes_say_what_one_does(folder: Path) -> None:
    files = [str(folder / "b.hlo"), str(folder / "deep/c.hlo"), str(folder / "missing"), str(folder / "a.txt")] * 3
    assert list(stats_of(files, jobs=2)) == list(stats_of(files, jobs=1))

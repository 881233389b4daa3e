"""The check of whole folders: what it measures is kept, a second run takes it from there, and a table tells the worst."""
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.kernel_work import dumps, measured, table, times

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def test_a_folder_is_measured_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, keep = tmp_path / "dumps", tmp_path / "kept.jsonl"
    folder.mkdir()
    (folder / "broken.hlo").write_text("HloModule broken\n\nENTRY main {\n  ROOT r = f32[2] add(x, y)\n}\n", encoding="utf-8")
    for name in ("newton.opt.hlo", "dense.relay", "tagger.inlined.txt"):
        shutil.copy(SAMPLES / name, folder / name)
    shutil.copy(SAMPLES / "tagger.pt", folder / "tagger.inlined.pt")
    files = dumps(folder)
    assert [file.name for file in files] == ["broken.hlo", "dense.relay", "newton.opt.hlo", "tagger.inlined.txt"]
    rows = list(measured(files[:2], keep, jobs=1))
    rows = list(measured(files, keep, jobs=1))
    assert len(keep.read_text(encoding="utf-8").splitlines()) == 4
    by_name = {Path(row["file"]).name: row for row in rows}
    assert not any(row["error"] for row in rows) and by_name["broken.hlo"]["refused"]
    assert all(0 < times(kernel) < 8 for row in rows for kernel in row["kernels"])
    assert by_name["tagger.inlined.txt"]["kernels"]
    table(rows, 3)
    told = capsys.readouterr().out
    assert told.count("| rows |") >= 1 and "4 texts, 1 of them refused" in told and "0 of them do more than they need, 0 failed" in told

"""The budget of each file holds in the processes of the fleet too, also for code that never asks and for code that is not Python."""
from __future__ import annotations

import hashlib
import os
from pathlib import Path

from irscope.fleet.pool import map_files
from irscope.source import UserError
from irscope.source.budget import Limits, budget, fresh_budget


def answer(path: str) -> str:
    """The name of a file. ``busy`` never asks for its budget, ``deaf`` is inside of a library for hours."""
    name = os.path.basename(path)
    try:
        with fresh_budget(name):
            while name == "busy":
                pass
            if name == "deaf":
                hashlib.pbkdf2_hmac("sha256", b"x", b"y", 1 << 31 - 1)
            return name
    except UserError as error:
        return error.message


def died(path: str, why: str) -> str:
    return f"died: {why}"


def test_whatever_a_file_does_the_others_are_answered(tmp_path: Path) -> None:
    names = [f"{n:02}" for n in range(20)] + ["busy"] + [f"{n:02}" for n in range(20, 30)] + ["deaf", "last"]
    files = [str(tmp_path / name) for name in names]
    for file in files:
        Path(file).write_text("x")
    with budget(Limits(0.3, None)):
        found = list(map_files(answer, died, files, jobs=2))
    said = {"busy": "busy takes more than 0.3 s of processor time", "deaf": "died: deaf takes more than 0.3 s of processor time"}
    assert found == [said.get(name, name) for name in names]

"""Programs that were once wrong, endless or refused give the values of XLA and torch, by the reference, one thread and two."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from irscope.lower.lowering import Lowering
from irscope.lower.program import Program as Lowered
from irscope.lower.repeated import EXCEPTIONS, MOST_REPEATED
from irscope.lower.work import operations, operations_of, padding
from tests.conftest import Cli
from tests.regressions.programs import VALUES, Program, of_files, read

PROGRAMS = {program.name: program for program in of_files()}
VECTORS = 4096
"""Operations that padding to vectors may add to the smallest kernels."""


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The kernels of what a test lowers that do more operations than their nodes take."""
    found: list[str] = []
    run = Lowering.run

    def and_count(self: Lowering) -> Lowered:
        program = run(self)
        for problem, built in self.kernel_cache.built.values():
            anchor = problem.group.anchor.op.name if problem.group.anchor is not None else "map"
            done, needed = sum(operations(stage.kernel) for stage in built.stages), operations_of(problem.group) * padding(problem)
            if done > EXCEPTIONS.get(anchor, (MOST_REPEATED, ""))[0] * needed + VECTORS:
                found.append(f"{problem.name}: {done:.0f} operations for {needed:.0f}")
        return program
    monkeypatch.setattr(Lowering, "run", and_count)
    yield found


def test_every_program_has_values() -> None:
    assert {key.rpartition(".")[0] for key in read(VALUES)[1]} == set(PROGRAMS)
    assert len(PROGRAMS) >= 30


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_gives_the_right_values(program: Program, cli: Cli, tmp_path: Path, repeated: list[str]) -> None:
    assert program.wrong(cli, tmp_path, read(VALUES)[1]) == ""
    assert not repeated

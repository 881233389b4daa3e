"""torch's operators with what torch itself gave for them: recorded graphs, inputs and outputs (tests/oracle/record_torch.py)."""
from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from irscope.backends.model import compile_module
from irscope.lower.options import Options
from tests.oracle.torch_cases import Case, by_reference, differences, program_of, read_cases

FILES = sorted((Path(__file__).resolve().parent.parent / "data").glob("torch_operators*.npz"))
PARTS = 8
PER_PROGRAM = 32


@cache
def recorded() -> tuple[Case, ...]:
    return tuple(case for file in FILES for case in read_cases(file))


def test_the_record_covers_the_families() -> None:
    operators = {op for case in recorded() for op in case.operators()}
    assert len(operators) >= 700
    assert {"aten::_convolution", "aten::scaled_dot_product_attention", "aten::index_put_", "aten::linalg_solve", "aten::fft_irfftn",
            "aten::linalg_svd", "aten::_pack_padded_sequence", "aten::ctc_loss", "aten::_unique2"} <= operators


@pytest.mark.parametrize("part", range(PARTS))
def test_operators_give_what_torch_gave(part: int) -> None:
    wrong = []
    with np.errstate(all="ignore"):
        for case in recorded()[part::PARTS]:
            difference = differences(by_reference(case), case.outputs)
            if difference:
                wrong.append(f"{case.name}: {difference}\n{case.text}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:5])


def merged(cases: list[Case]) -> Case:
    """Several calls as one graph, so that the compiler is started once for all of them."""
    inputs, statements, results = [], [], []
    for number, case in enumerate(cases):
        text = re.sub(r"%([\w.]+)", rf"%c{number}_\1", case.text)
        head, _, body = text.partition("):\n")
        inputs.append(head.removeprefix("graph("))
        lines, _, returned = body.rpartition("  return (")
        statements.append(lines)
        results.append(returned.partition(")")[0])
    text = "graph(" + ",\n      ".join(inputs) + "):\n" + "".join(statements) + "  return (" + ", ".join(results) + ")\n"
    return Case("merged", text, tuple(a for c in cases for a in c.inputs), tuple(a for c in cases for a in c.outputs))


def first_of_each_operator() -> list[Case]:
    """One case an operator, without those that know other operators too."""
    seen: set[str] = set()
    chosen = []
    for case in recorded():
        if case.operators() - seen and "prim::If" not in case.text and "graph(%" in case.text:
            seen |= case.operators()
            chosen.append(case)
    return chosen


@pytest.mark.parametrize("part", range(6))
def test_compiled_operators_give_what_torch_gave(part: int) -> None:
    chosen = first_of_each_operator()[part::6]
    for start in range(0, len(chosen), PER_PROGRAM):
        whole = merged(chosen[start:start + PER_PROGRAM])
        made, given = program_of(whole)
        got = compile_module(made, {}, Options(threads=1), use_cache=False)(*given)
        at = 0
        for case in chosen[start:start + PER_PROGRAM]:
            difference = differences(got[at:at + len(case.outputs)], case.outputs)
            assert not difference, f"{case.name}: {difference}\n{case.text}"
            at += len(case.outputs)

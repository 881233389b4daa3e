"""The random programs themselves: the same from one seed everywhere, valid, in the corners that they are for; failures are found and told."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irscope.analysis.reference import results
from tests.programs import campaign, hlo, judge, relay, torchscript
from tests.programs.arrays import arrays_of
from tests.programs.campaign import CHUNK, State, program_of, tree_hash
from tests.programs.fates import fate
from tests.programs.judge import primitive, same_bits
from tests.programs.minimise import minimise
from tests.programs.program import Program, Value
from tests.programs.workers import Worker

CORNERS = {
    "hlo": ("while conditional call convolution dot reduce reduce-window select-and-scatter gather scatter dynamic-slice dynamic-update-slice sort "
            "concatenate pad transpose reshape fft cholesky triangular-solve complex batch_group_count feature_group_count lhs_dilate rhs_dilate "
            "rhs_reversal bf16 f16 f8e4m3fn f8e5m2 s4 u4 s8 u8 s16 pred c64 f64"),
    "torchscript": ("prim::If prim::Loop slice select transpose permute movedim reshape view flatten contiguous unflatten expand diagonal unfold chunk "
                    "split unbind view_as_real to detach dropout add_ mul_ copy_ fill_ masked_fill_ index_put_ t_ conv2d _convolution constant_pad_nd"),
    "relay": "if less @c0( nn.conv2d nn.pad concatenate nn.dense nn.softmax nn.batch_norm take scatter_elements split float16 int8 cumsum",
}


def test_a_seed_is_one_program_whatever_was_made_before_it() -> None:
    """Under every hash seed, and whichever format was imported first."""
    def texts(order: str, hash_seed: str) -> str:
        code = f"from tests.programs.campaign import program_of; print(sorted((s, program_of(s).text()) for s in {order}))"
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(campaign.ROOT)}
        return subprocess.run([sys.executable, "-c", code], env=environment, cwd=campaign.ROOT, capture_output=True, text=True, check=True).stdout
    assert texts("range(24)", "1") == texts("reversed(range(24))", "2")


@pytest.mark.parametrize("module", [hlo, torchscript, relay])
def test_programs_reach_the_corners_that_they_are_for(module: object) -> None:
    name = str(getattr(module, "__name__", "")).rpartition(".")[2]
    seeds = range({"hlo": 700, "torchscript": 400, "relay": 200}[name])
    whole = "\n".join(hlo.program(s).text() if name == "hlo" else torchscript.program(s).text() if name == "torchscript" else relay.program(s).text()
                      for s in seeds)
    assert not [corner for corner in CORNERS[name].split() if not re.search(rf"(?<!\w){re.escape(corner)}(?![\w])" if corner[-1] != "(" else
                                                                              re.escape(corner), whole)]


def test_programs_are_valid_and_the_reference_runs_them() -> None:
    for seed in range(32):
        program = program_of(seed)
        made, given = primitive(program, arrays_of(program, seed))
        with np.errstate(all="ignore"):
            assert len(results(made, given)) == len(program.outputs)


def test_special_numbers_are_among_the_inputs_of_some() -> None:
    found = Counter[str]()
    for seed in range(0, 200, 2):
        program = program_of(seed)
        for value, array in zip(program.inputs, arrays_of(program, seed), strict=True):
            if array.dtype in (np.float16, np.float32, np.float64):
                odd = {"nan": np.isnan(array).any(), "inf": np.isinf(array).any(), "zero": (np.signbit(array) & (array == 0)).any(),
                       "denormal": ((array != 0) & (np.abs(array) < np.finfo(array.dtype).tiny)).any()}
                assert program.special or not any(odd.values())
                assert not (value.plain and any(odd.values()))
                found.update(name for name, there in odd.items() if there)
    assert set(found) == {"nan", "inf", "zero", "denormal"}


def test_a_wrong_result_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that turns sums round, as a fault would be: the program that is left holds the sum and no more."""
    honest = judge.compiled

    def wrong(module: object, threads: int) -> object:
        model = honest(module, threads)  # type: ignore[arg-type]
        if "add" not in {node.op.name for node in model.module.main().nodes}:
            return model
        return lambda *arrays: [np.where(a == a, a + 1, a).astype(a.dtype) for a in model(*arrays)]
    monkeypatch.setattr(judge, "compiled", wrong)
    program = next(p for p in map(hlo_with_sum, range(100)) if p is not None)
    verdict = judge.judge(program)
    assert verdict.kind == "differs"
    small = minimise(program, lambda p: judge.judge(p).like(verdict))
    assert len(small.statements) <= 2 and " add(" in small.text()


def hlo_with_sum(seed: int) -> Program | None:
    """The program of a seed if it adds in its entry and is right as it is."""
    program = hlo.program(seed, "plain")
    adds = any(" add(" in s.text for s in program.statements) and len(program.statements) > 4
    return program if adds and all(" convolution(" not in s.text for s in program.statements) else None


def test_bits_are_compared_as_bits_and_nan_is_nan() -> None:
    zero, nan = np.array([0.0, np.nan]), np.array([-0.0, np.nan])
    assert same_bits([zero], [zero.copy()]) and not same_bits([zero], [nan])
    assert same_bits([np.array([np.nan])], [-np.array([np.nan])])
    assert not same_bits([np.array([1])], [np.array([2])])


def test_an_exact_float_beyond_what_is_known_of_it_is_found() -> None:
    value = Value("v1", "f32", (2,), low=0, high=4)
    assert judge.beyond_range(value, np.array([0, 4], np.float32)) is None
    assert judge.beyond_range(value, np.array([0, 5], np.float32)) == "v1 is from 0.0 to 5.0, not from 0 to 4"
    assert judge.beyond_range(replace(value, grade="rough"), np.array([0, 5], np.float32)) is None


def test_a_worker_that_dies_or_does_not_end_is_replaced() -> None:
    worker = Worker(fate, limit=0.5)
    try:
        assert [worker.ask(seed).kind for seed in (0, 1, 0, 2, 0)] == ["same", "died", "same", "slow", "same"]
    finally:
        worker.close()


def test_a_campaign_goes_on_where_it_ended(tmp_path: Path) -> None:
    state = State(tmp_path, "all")
    assert state.folder.name == f"all-{tree_hash(campaign.ROOT / 'irscope')}"
    first, second = list(range(CHUNK)), list(range(CHUNK, 2 * CHUNK))
    state.finish(first[0], first[-1], Counter({"hlo same": 49, "hlo differs": 1}), 1.0)
    state.finish(second[0], second[-1], Counter({"hlo same": 50}), 1.0)
    total = campaign.run([*first, *second], State(tmp_path, "all"), jobs=0, limit=1.0)
    assert total == Counter({"hlo same": 99, "hlo differs": 1})


def test_the_hash_follows_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    before = tree_hash(tmp_path)
    (tmp_path / "a.py").write_text("2")
    assert tree_hash(tmp_path) != before
    (tmp_path / "a.py").write_text("1")
    assert tree_hash(tmp_path) == before


def test_what_nothing_reads_is_left_out() -> None:
    program = next(p for p in (hlo.program(s) for s in range(50)) if len(p.outputs) > 1)
    smaller = replace(program, outputs=program.outputs[:1]).live()
    assert len(smaller.statements) <= len(program.statements) and smaller.outputs[0] in {s.value for s in smaller.statements}

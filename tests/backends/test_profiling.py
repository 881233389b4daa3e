"""Profiles: every launch is counted, parts add up, and profiled programs compute the same."""
from __future__ import annotations

import sys

import numpy as np
import pytest

from irscope.backends import llvm_compile
from irscope.backends.compile import compile_program, units
from irscope.backends.executable import Executable, Port
from irscope.backends.profiling import CallProfile, Ports, bytes_of, profiled
from irscope.graph.dtypes import F32
from irscope.lower.program import Launch, Program, Slot
from tests.backends.test_programs import binary, counting

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="--profile is not supported there")


def ports_of(program: Program) -> Ports:
    inputs, outputs = ([Port(s.name, s.dtype, (s.elements,)) for s in slots] for slots in (program.inputs, program.outputs))
    return Ports(inputs, outputs)


def large(launches: int = 3) -> Program:
    """z = x + y of a million elements, several times: each launch is divided among threads."""
    n = 1 << 20
    kernel = binary("add", F32, n, flops=1e9)
    x, y, z = Slot("x", F32, n, "input", 0), Slot("y", F32, n, "input", 1), Slot("z", F32, n, "output", 0)
    return Program("large", [x, y], [z], steps=[Launch(kernel, [(x, 0), (y, 0), (z, 0)]) for _ in range(launches)])


def check_sums(call: CallProfile) -> None:
    """The parts of a call add up to the whole, and no thread is busy longer than a kernel takes."""
    assert call.total_us == pytest.approx(call.checks_us + call.launch_us + call.kernels_us, abs=1e-6)
    assert call.kernels_us == pytest.approx(sum(row.us for row in call.kernels), abs=1e-6)
    assert call.idle_us == pytest.approx(call.threads * call.kernels_us - sum(row.busy_us for row in call.kernels), abs=1e-6)
    assert min(call.checks_us, call.launch_us, call.kernels_us) >= 0 and call.calls >= 2
    assert all(0 <= row.busy_us <= call.threads * row.us + 1e-6 for row in call.kernels)
    assert call.idle_us >= -1e-6


def test_launches_in_loops_and_copies_are_counted() -> None:
    program, n = counting(), 5
    call = profiled(program, ports_of(program), [np.array([n], np.int32)], 1, "", 0.0)
    check_sums(call)
    rows = {row.name: row for row in call.kernels}
    assert rows["add"].runs == 2 * n and rows["LT"].runs == n + 1 and rows["copies"].runs == 2 + 2 * n + 1
    assert rows["copies"].bytes == 2 * 4 * rows["copies"].runs and rows["copies"].kernel is None and rows["copies"].code is None
    assert rows["copies"].flops == 0.0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_work_that_is_divided_adds_up(threads: int) -> None:
    program = large()
    arrays = [np.ones(1 << 20, np.float32)] * 2
    call = profiled(program, ports_of(program), arrays, threads, "", 0.0)
    check_sums(call)
    (row,) = call.kernels
    assert row.runs == 3 and row.flops == 3e9 and row.bytes == 3 * 3 * 4 * (1 << 20) and call.threads == threads
    if threads == 1:
        assert call.idle_us == 0 and row.busy_us == row.us


def test_a_profiled_program_computes_the_same() -> None:
    rng = np.random.default_rng(0)
    for program, arrays in ((large(), [rng.standard_normal(1 << 20, np.float32) for _ in range(2)]), (counting(), [np.array([7], np.int32)])):
        ports = ports_of(program)
        plain, timed = (Executable(program, ports.inputs, ports.outputs, compile_program(program, llvm_compile.host(), profiled=flag), 2)
                        for flag in (False, True))
        assert plain(*arrays)[0].tobytes() == timed(*arrays)[0].tobytes()
        assert not plain.records.any() and timed.records.any()


def test_a_program_that_is_not_profiled_has_no_clock() -> None:
    assert "irscope.now" not in "".join(unit.text for unit in units(large(), llvm_compile.host())[0])


def test_what_is_not_counted_is_unknown() -> None:
    program = large(1)
    program.launches()[0].kernel.counts_flops = False
    call = profiled(program, ports_of(program), [np.ones(1 << 20, np.float32)] * 2, 1, "", 0.0)
    assert call.kernels[0].flops is None and call.kernels[0].bytes > 0


def test_bytes_count_each_value_once() -> None:
    assert bytes_of(binary("add", F32, 100)) == 3 * 400


def test_kernels_with_equal_code_are_separate_rows() -> None:
    n = 64
    first, second = binary("add", F32, n), binary("add", F32, n)
    second.name = "other"
    x, y, z, w = Slot("x", F32, n, "input", 0), Slot("y", F32, n, "input", 1), Slot("z", F32, n, "output", 0), Slot("w", F32, n, "output", 1)
    program = Program("two", [x, y], [z, w], steps=[Launch(first, [(x, 0), (y, 0), (z, 0)]), Launch(second, [(x, 0), (y, 0), (w, 0)])])
    call = profiled(program, ports_of(program), [np.ones(n, np.float32)] * 2, 1, "", 0.0)
    assert sorted(row.name for row in call.kernels) == ["add", "other"] and call.kernels[0].code == call.kernels[1].code


def test_systems_without_the_clock_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from irscope.source import UserError

    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UserError, match="--profile is not supported on this system"):
        profiled(large(), ports_of(large()), [], 1, "", 0.0)

"""What a tuner may choose from: other schedules of the template that takes a kernel, and those of its rival; whatever it picks is right."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.expand import bind_inputs, expand
from irscope.lower.interpret import interpret_program
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.program import Program
from irscope.lower.schedule import AVX512
from irscope.lower.templates import Built, Problem
from irscope.lower.tile import Schedule
from tests.lower.running import drawn, entry
from tests.lower.test_templates_contraction import product
from tests.lower.test_templates_convolution import NHWC, conv

PADDED = conv("1,4,5,3", "3,3,3,5", "1,4,5,5", "size=3x3 pad=1_1x1_1", NHWC)
WINOGRAD = conv("1,6,6,16", "3,3,16,16", "1,6,6,16", "size=3x3 pad=1_1x1_1", NHWC)


def tuned(text: str, choose: Callable[[list[Schedule]], int], fixed: tuple[int, ...] = ()) -> tuple[Program, list[list[Schedule]]]:
    """The program that a tuner leads to, and the schedules that it was offered for each kernel."""
    module = load(text).module()
    arrays = drawn(module)
    offered: list[list[Schedule]] = []

    def tuner(problem: Problem, ways: list[Built]) -> int:
        offered.append([dict(way.stages[-1].kernel.schedule) for way in ways])
        return choose(offered[-1])

    return lower(expand(bind_inputs(module, {i: arrays[i] for i in fixed})), Options(machine=AVX512), tuner), offered


def agrees(text: str, program: Program, fixed: tuple[int, ...]) -> None:
    """The program, run by the interpreter, gives what the reference gives."""
    module = load(text).module()
    arrays = drawn(module)
    results = interpret_program(program, [a for i, a in enumerate(arrays) if i not in fixed])
    for result, wanted in zip(results, flatten(evaluate(module.main(), arrays)), strict=True):
        np.testing.assert_allclose(result.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("text", "fixed", "template"), [(product(7, 37, 9, "mk", "kn"), (1,), "contraction"), (PADDED, (), "convolution")],
                         ids=["product", "convolution"])
def test_other_tiles_are_offered_and_compute_the_same(text: str, fixed: tuple[int, ...], template: str) -> None:
    program, [offered] = tuned(text, lambda ways: 0, fixed)
    assert {way["template"] for way in offered} == {template} and len(offered) > 2
    assert all(way not in offered[:n] for n, way in enumerate(offered))
    assert dict(program.kernels()[-1].schedule) == offered[0]
    program, _ = tuned(text, lambda ways: len(ways) - 1, fixed)
    assert dict(program.kernels()[-1].schedule) == offered[-1] != offered[0]
    agrees(text, program, fixed)


def test_the_direct_convolution_is_the_rival_of_the_transformed_one() -> None:
    program, [offered] = tuned(WINOGRAD, lambda ways: next(n for n, way in enumerate(ways) if way["template"] == "convolution"), (1,))
    names = [way["template"] for way in offered]
    assert names[0] == "winograd" and names[-1] == "convolution" and sorted(set(names)) == ["convolution", "winograd"]
    assert {kernel.schedule["template"] for kernel in program.kernels() if "template" in kernel.schedule} == {"convolution"}
    _, [offered] = tuned(PADDED, lambda ways: 0)
    assert "winograd" not in {way["template"] for way in offered}


@pytest.mark.parametrize("text", [
    product(9, 2, 40, "mk", "nk"),
    entry("""
      x = f32[6,5,40] parameter(0)
      y = f32[6,40] parameter(1)
      d = f32[40,5] dot(x, y), lhs_batch_dims={2}, rhs_batch_dims={1}, lhs_contracting_dims={0}, rhs_contracting_dims={0}
      ROOT t = f32[5,40] transpose(d), dimensions={1,0}"""),
    conv("1,12,12,40", "5,5,1,40", "1,4,4,40", "size=5x5 stride=2x2", NHWC, ", feature_group_count=40").replace("f32", "s32"),
    entry("x = f32[40] parameter(0)\n ROOT y = f32[40] tanh(x)"),
], ids=["inner products", "batches side by side", "depthwise", "map"])
def test_what_has_one_schedule_is_not_tuned(text: str) -> None:
    assert tuned(text, lambda ways: 1 // 0)[1] == []


def test_equal_kernels_are_tuned_once() -> None:
    text = entry("""
      x = f32[7,20] parameter(0)
      y = f32[20,20] parameter(1)
      z = f32[20,20] parameter(2)
      d = f32[7,20] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT e = f32[7,20] dot(d, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
    for fixed in ((), (1, 2)):
        program, offered = tuned(text, lambda ways: 1, fixed)
        assert len(offered) == 1 and len(program.launches()) == 2 and [k.schedule for k in program.kernels()] == [offered[0][1]]
        agrees(text, program, fixed)

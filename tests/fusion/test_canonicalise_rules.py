"""Every rewriting rule on a small program of its own, against the operators that jaxlib 0.10.2 left before its fusion pass."""
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irscope.analysis.reference import results
from irscope.api import load
from irscope.fusion.canonicalise import canonicalise, run_cpu
from irscope.fusion.xla.releases import CPU_0_10_2
from irscope.fusion.xla.stage import computations
from irscope.graph import Module, TensorType, Type
from irscope.source import UserError

TEXT = (Path(__file__).parent.parent / "data" / "xla_cpu_rewrites.txt").read_text()
CASES = {head.split(":")[0]: (head.split(":")[1].split(), body) for head, body in (part.split("\n", 1) for part in TEXT.split("\n=== ")[1:])}


def operators(module: Module) -> list[str]:
    """The operators of everything that runs, without parameters and constants."""
    names = (node.op.name for graph in computations(module) for node in graph.nodes)
    return sorted(name for name in names if name not in ("parameter", "constant"))


def rewritten(text: str) -> Module:
    reading = load(text)
    assert reading.ok, [finding.message for finding in reading.findings]
    return canonicalise(reading.module(), partial(run_cpu, rewriting=CPU_0_10_2.rewriting)).module


@pytest.mark.parametrize("name", CASES)
def test_a_program_becomes_what_xla_makes_of_it(name: str) -> None:
    expected, text = CASES[name]
    assert operators(rewritten(text)) == expected


def drawn(type: Type) -> Any:
    """An array for a parameter: normal numbers, or zeros and ones."""
    assert isinstance(type, TensorType)
    rng = np.random.default_rng(sum(type.dims()))
    values = rng.standard_normal(type.dims()) if type.dtype.is_float or type.dtype.is_complex else rng.integers(0, 2, type.dims())
    return np.asarray(values).astype(type.dtype.numpy())


OTHERWISE = {
    "log-of-power": "XLA takes the logarithm of the base, which may be negative",
    **{f"reduce_{dtype}_by_add": "the text rounds after the sum, XLA after each step" for dtype in ("bf16", "f16", "f8")},
}


@pytest.mark.parametrize("name", sorted(CASES.keys() - OTHERWISE))
def test_a_program_means_the_same_afterwards(name: str) -> None:
    text = CASES[name][1]
    tolerance = 0.5 if "f8e" in text else 0.03 if "f16" in text else 1e-4  # f16 is a part of bf16
    before = load(text).module()
    inputs = [drawn(param.type) for param in before.main().params]
    for one, other in zip(results(before, inputs), results(rewritten(text), inputs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(other.astype(np.complex128), one.astype(np.complex128), rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize(("left", "right"), [("2,3,?", "2,4,5"), ("2,3,1", "2,<=4,5"), ("2,3,<=1", "2,4,5")])
def test_a_dot_that_sums_over_one_on_one_side_and_more_on_the_other_stays(left: str, right: str) -> None:
    """The number of terms is dynamic: the side of one element is not multiplied as it is."""
    dims = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
    lines = f"a = f32[{left}] parameter(0)\n b = f32[{right}] parameter(1)\n ROOT r = f32[2,3,5] dot(a, b), {dims}"
    assert operators(rewritten(f"HloModule m\nENTRY e {{\n {lines}\n}}\n")) == ["dot"]


def test_a_text_that_lacks_what_decides_is_refused() -> None:
    reading = load("HloModule m\nENTRY e {\n x = f32[4,4] parameter(0)\n y = f32[4,4] transpose(x)\n ROOT n = f32[4,4] negate(y)\n}\n")
    with pytest.raises(UserError, match="leaves out dimensions of %y"):
        canonicalise(reading.module())


def test_calls_that_double_again_and_again_are_refused() -> None:
    lines = ["f0 {\n p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p)\n}"]
    lines += [f"f{i} {{\n p = f32[4] parameter(0)\n a = f32[4] call(p), to_apply=f{i - 1}\n ROOT b = f32[4] call(a), to_apply=f{i - 1}\n}}"
              for i in range(1, 25)]
    text = "HloModule m\n" + "\n".join(lines) + "\nENTRY e {\n x = f32[4] parameter(0)\n ROOT r = f32[4] call(x), to_apply=f24\n}\n"
    with pytest.raises(UserError, match="written out, the calls of this module are more than"):
        canonicalise(load(text).module())


def test_a_long_chain_is_rewritten_without_recursion() -> None:
    count = 20_000
    lines = ["x0 = f32[4] parameter(0)"] + [f"x{i} = f32[4] {('negate', 'cosine', 'tanh')[i % 3]}(x{i - 1})" for i in range(1, count)]
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + f"\nROOT r = f32[4] abs(x{count - 1})\n}}\n"
    assert len(rewritten(text).main().nodes) == count + 1


@pytest.mark.parametrize(("constant", "expected"), [("{ { {2304} } }", 1), ("{...}", 2)])
def test_a_division_by_a_constant_of_one_element_and_three_axes_is_inverted_once(constant: str, expected: int) -> None:
    """``1 / c`` is a quotient by a constant too: it was inverted again in every round, 66 products long."""
    text = f"""HloModule m, entry_computation_layout={{(f32[1,7,1]{{2,1,0}})->f32[1,7,1]{{2,1,0}}}}

add {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }}
ENTRY e {{
 p = f32[1,7,1]{{2,1,0}} parameter(0)
 z = f32[] constant(0)
 s = f32[1,1]{{1,0}} reduce(p, z), dimensions={{1}}, to_apply=add
 x = f32[1,1,1]{{2,1,0}} reshape(s)
 c = f32[1,1,1]{{2,1,0}} constant({constant})
 d = f32[1,1,1]{{2,1,0}} divide(x, c)
 b = f32[1,1]{{1,0}} reshape(d)
 bb = f32[1,7,1]{{2,1,0}} broadcast(b), dimensions={{0,2}}
 ROOT r = f32[1,7,1]{{2,1,0}} add(p, bb)
}}
"""
    found = operators(rewritten(text))
    assert found.count("multiply") + found.count("divide") == expected


def test_the_largest_elements_are_the_work_of_the_runtime() -> None:
    """What they are made of before, a sort with the places, is left behind in XLA's dump, where nobody reads it."""
    text = "HloModule m\nENTRY e {\n x = f32[8,64] parameter(0)\n ROOT t = (f32[8,4], s32[8,4]) topk(x), k=4, largest=true\n}\n"
    assert operators(rewritten(text)) == ["custom-call"]

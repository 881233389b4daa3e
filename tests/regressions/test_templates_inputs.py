"""Files of strangers that kernels took too long to be made for, and differences that a comparison did not see."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.backends.comparison import compare
from irscope.lower.build import KernelBuilder
from irscope.lower.pull import along_lanes
from irscope.lower.templates.map import MOST_RESHAPES, most_reshapes
from tests.effort import calls_in

GATHER = "gather(p, {x}), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}"


def gathered(lines: list[str], last: str, size: int) -> str:
    return "\n".join(["HloModule m", "ENTRY e {", " p = f32[1000] parameter(0)", " x0 = s32[512] parameter(1)", *lines,
                      f" ROOT r = f32[{size}] {GATHER.format(x=last)}", "}"])


def test_indices_that_are_mirrored_and_shifted_many_times() -> None:
    lines, size = [], 512
    indices = expected = np.arange(512, dtype=np.int32)
    for i in range(40):
        lines += [f" a{i} = s32[{size}] reverse(x{i}), dimensions={{0}}", f" x{i + 1} = s32[{size - 1}] slice(a{i}), slice={{[1:{size}]}}"]
        size, expected = size - 1, expected[::-1][1:]
    p = np.arange(1000, dtype=np.float32)
    (found,) = irscope.compile(irscope.load(gathered(lines, "x40", size), format="hlo"))(p, indices)
    np.testing.assert_array_equal(found, p[expected])


def test_lanes_are_found_in_as_many_steps_as_an_index_has() -> None:
    def found(n: int) -> None:
        k = KernelBuilder("k")
        index = k.lane(4)
        for i in range(n):
            index = index * k.splat(k.index(-1), 4) + k.splat(k.index(i), 4)
        assert along_lanes(k, index) is not None

    small, large = calls_in(found, 100), calls_in(found, 1000)
    assert large < 15 * small


def test_the_most_reshapes_on_a_path_are_counted() -> None:
    lines = [f" y{i} = s32[64,8] reshape(x{i})\n t{i} = s32[8,64] transpose(y{i}), dimensions={{1,0}}\n x{i + 1} = s32[512] reshape(t{i})"
             for i in range(20)]
    nodes = irscope.load(gathered(lines, "x20", 512), format="hlo").module().main().nodes
    assert most_reshapes(nodes) == 40 > MOST_RESHAPES
    assert most_reshapes([node for node in nodes if node.op.name != "reshape"]) == 0


def test_large_integers_that_differ_by_one_differ() -> None:
    large = np.array([2**62, 2**62], np.int64)
    found = compare("out0", large + np.array([0, 1]), large)
    assert found.fault is not None and found.fault.startswith("1 of 2 values differ, the most at out0[1]")
    assert found.max_abs == 1
    assert compare("out0", large, large).fault is None


@pytest.mark.parametrize("dtype", ["f32", "bf16", "c128", "s4"])
def test_counts_beyond_32_bits(dtype: str) -> None:
    text = f"HloModule m\nENTRY e {{\n i = {dtype}[3000000000] iota(), iota_dimension=0\n" \
        f" s = {dtype}[20] slice(i), slice={{[2999999980:3000000000]}}\n ROOT r = {dtype}[20] negate(s)\n}}"
    (found,) = irscope.compile(irscope.load(text, format="hlo"))()
    expected = -np.arange(2999999980, 3000000000).astype(found.dtype)
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


def test_finite_parts_beside_infinite_ones_have_a_tolerance() -> None:
    expected = np.array([complex(-np.inf, -25.0), complex(np.inf, 0.5)], np.complex64)
    assert compare("out0", np.array([complex(-np.inf, -25.000002), expected[1]], np.complex64), expected).fault is None
    assert compare("out0", np.array([complex(-np.inf, -26.0), expected[1]], np.complex64), expected).fault is not None
    assert compare("out0", np.array([complex(np.inf, -25.0), expected[1]], np.complex64), expected).fault is not None

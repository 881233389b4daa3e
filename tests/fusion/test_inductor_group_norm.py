"""Group normalisation: a scale and a shift for each channel, as torch.compile makes them on a CPU."""
from __future__ import annotations

import pytest

from irscope.expand import expand
from irscope.fusion.inductor.policy import POLICY
from irscope.fusion.inductor.scheduler import Scheduler
from tests.fusion.inductor_texts import graph, plan, tensor, verdict

INPUTS = {"x": tensor(2, 16, 16, 16), "k": tensor(16, 16, 3, 3), "m": tensor(16, 16, 3, 3), "g": tensor(16), "b": tensor(16)}
CONV = "[1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True, True"
BLOCK = f"""
    c = aten::_convolution(%x, %k, None, {CONV})
    n = aten::group_norm(%c, 4, %g, %b, 1e-05, True)
    s = aten::silu(%n)
    d = aten::_convolution(%s, %m, None, {CONV})
    r = aten::add(%x, %d, 1)
"""


def scheduler(lines: str) -> Scheduler:
    """The scheduler after all rounds."""
    made = POLICY.prepared(expand(graph(INPUTS, lines, "r")).main()).scheduler
    made.run()
    return made


def test_scale_and_shift_share_the_outer_loops_of_the_variance() -> None:
    # torch 2.13: op5 is the variance, op6 the scale, op7 the shift, over (2, 4, 4); op8 reads both in another order.
    made = scheduler(BLOCK)
    assert [kernel.label for kernel in made.kernels][3:7] == ["op3", "op4", "op5_op6_op7", "op8"]
    assert made.joined == [("op6", "op7"), ("op5", "op6_op7")]
    said = set(made.said)
    assert "cannot fuse op5_op6_op7 with op8: no shared data" in said
    assert "cannot fuse op4 with op6_op7: intermediate nodes between node1 & node2" in said


def test_the_result_goes_into_what_reads_it() -> None:
    made = plan(graph(INPUTS, BLOCK, "r"))
    assert verdict(made, "n", "s").fused == "all"
    assert verdict(made, "c", "n").rule == "extern-kernel"
    assert made.calls is not None
    assert "".join("e" if call.extern else str(call.nests) for call in made.calls) == "2e5e1"


@pytest.mark.parametrize(("weights", "operations"), [("%g, %b", 5), ("%g, None", 5), ("None, None", 3)])
def test_without_weights_nothing_is_scaled(weights: str, operations: int) -> None:
    made = scheduler(BLOCK.replace("%g, %b", weights))
    loops = [b for kernel in made.kernels for b in kernel.buffers if b.kind in ("pointwise", "reduction")]
    assert len([b for b in loops if b.node.origin[0].op.name == "aten::group_norm"]) == operations

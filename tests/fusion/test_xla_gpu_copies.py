"""XLA's pass that lets a kernel write the copies of its results."""
from __future__ import annotations

import pytest

from irscope.fusion.policy import AsWritten, policy_named
from irscope.fusion.xla import copying
from irscope.fusion.xla.copying import fuse_copies
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement
from tests.fusion.xla_texts import ADD, module

LOOP = "loop { p = f32[64,32] parameter(0)\n m = f32[64,32] multiply(p, p)\n ROOT n = f32[64,32] negate(m) }\n"
TWO = "two { p = f32[64,32] parameter(0)\n n = f32[64,32] negate(p)\n e = f32[64,32] exponential(p)\n " \
    "ROOT t = (f32[64,32], f32[64,32]) tuple(n, e) }\n"
ONE_COPY = "x = f32[64,32] parameter(0)\n f = f32[64,32] fusion(x), kind=kLoop, calls=loop\n c = f32[64,32] copy(f)\n " \
    "ROOT t = (f32[64,32], f32[64,32]) tuple(f, c)"


def written(instructions: str, header: str) -> list[list[str]]:
    """What the kernels give behind the pass, as opcodes, and the opcodes of the entry last."""
    computation = Computation.of(module(instructions, header).main())
    fuse_copies(computation, DEVICES["h100"])
    bodies = [i.body for i in computation.post_order() if i.body is not None]
    return [*([o.op.name for o in b.root.operands] for b in bodies if b.root.op is hlo.tuple), [i.op.name for i in computation.post_order()]]


def body(lines: str, operand: str = "f32[64,32]") -> str:
    return ADD + f"loop {{ p = {operand} parameter(0)\n z = f32[] constant(0)\n i = s32[] constant(0)\n {lines} }}\n"


def test_a_copy_is_written_by_the_kernel_that_computes_it() -> None:
    assert written(ONE_COPY, LOOP) == [["negate", "copy"], ["parameter", "fusion", "get-tuple-element", "get-tuple-element", "tuple"]]


def test_a_copy_of_one_of_several_results() -> None:
    text = "x = f32[64,32] parameter(0)\n f = (f32[64,32], f32[64,32]) fusion(x), kind=kLoop, calls=two\n " \
        "a = f32[64,32] get-tuple-element(f), index=0\n b = f32[64,32] get-tuple-element(f), index=1\n k = f32[2048] bitcast(b)\n " \
        "c = f32[2048] copy(k)\n ROOT t = (f32[64,32], f32[2048]) tuple(a, c)"
    assert written(text, TWO) == [["negate", "exponential", "copy"],
                                  ["parameter", "fusion", "get-tuple-element", "get-tuple-element", "tuple"]]


def test_each_copy_becomes_the_result_that_the_kernel_writes_for_it() -> None:
    text = "x = f32[64,32] parameter(0)\n f = (f32[64,32], f32[64,32]) fusion(x), kind=kLoop, calls=two\n " \
        "a = f32[64,32] get-tuple-element(f), index=0\n b = f32[64,32] get-tuple-element(f), index=1\n " \
        "c = f32[64,32] copy(a)\n k = f32[2048] bitcast(b)\n d = f32[2048] copy(k)\n " \
        "ROOT t = (f32[64,32], f32[2048]) tuple(c, d)"
    computation = Computation.of(module(text, TWO).main())
    fuse_copies(computation, DEVICES["h100"])
    (kernel,) = (i for i in computation.post_order() if i.body is not None)
    assert kernel.body is not None
    results = kernel.body.root.operands
    first, second = (results[GetTupleElement.of(part).index] for part in computation.root.operands)
    assert first.op is second.op is hlo.copy
    assert first.operands[0].op.name == "negate"
    assert second.operands[0].op.name == "bitcast" and second.operands[0].operands[0].op.name == "exponential"


ONE = "x = {operand} parameter(0)\n f = {type} fusion(x), kind=kLoop, calls=loop\n c = {type} copy(f)\n ROOT t = ({type}, {type}) tuple(f, c)"


@pytest.mark.parametrize("lines, type, operand", [
    ("ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add", "f32[64]", "f32[64,32]"),
    ("ROOT r = f32[32,64] transpose(p), dimensions={1,0}", "f32[32,64]", "f32[64,32]"),
    ("u = f32[64,32] broadcast(z), dimensions={}\n s = f32[1,32] slice(u), slice={[0:1], [0:32]}\n "
     "ROOT r = f32[64,32] dynamic-update-slice(u, s, i, i)", "f32[64,32]", "f32[64,32]"),
], ids=["reduction", "not elementwise", "update in place"])
def test_what_stays(lines: str, type: str, operand: str) -> None:
    """A kernel that reads elsewhere than it writes could write over what it reads."""
    assert written(ONE.format(type=type, operand=operand), body(lines, operand))[-1].count("copy") == 1


def test_a_copy_into_another_layout_stays() -> None:
    text = ONE_COPY.replace("c = f32[64,32] copy", "c = f32[64,32]{0,1} copy").replace("(f32[64,32], f32[64,32]) tuple",
                                                                                       "(f32[64,32], f32[64,32]{0,1}) tuple")
    assert written(text, LOOP)[-1].count("copy") == 1


@pytest.mark.parametrize("limit, copies", [(3, 0), (2, 2)])
def test_a_kernel_writes_so_many_results_and_no_more(limit: int, copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "MAX_BUFFERS", limit)
    text = "x = f32[64,32] parameter(0)\n f = f32[64,32] fusion(x), kind=kLoop, calls=loop\n c = f32[64,32] copy(f)\n " \
        "d = f32[64,32] copy(f)\n ROOT t = (f32[64,32], f32[64,32], f32[64,32]) tuple(f, c, d)"
    assert written(text, LOOP)[-1].count("copy") == copies


def test_kernels_of_the_plan_write_copies() -> None:
    """The first pass leaves the copy alone, for the result is read by something else too."""
    chosen = policy_named("xla-gpu")
    assert isinstance(chosen, AsWritten)
    assert chosen.plan_module(module(ONE_COPY, LOOP))[0].kernels() == 1

"""What is left out of the oracle: programs that a cause concerns, and none beside them."""
from __future__ import annotations

import pytest

from tests.programs.left_out import LEFT_OUT, cause_of
from tests.programs.oracle import Fixed, judge_by_peer
from tests.programs.program import Program, Value

CROPS, SELECTS, SLICES, ZEROS, GROUPS = LEFT_OUT["hlo"]
SPECIAL, DENORMAL, LOST = LEFT_OUT["torchscript"]
GREATER = "c0 {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GT\n}\n"
SUM = "c1 {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"


def program(body: str, helpers: str = "", special: bool = False) -> Program:
    return Program("hlo", (), (), (), Fixed(f"HloModule m\n\n{helpers}ENTRY main {{\n  {body}\n}}\n"), {}, special)


def convolution(pad: str, made: int) -> Program:
    return program(f"x = f32[1,1,5] parameter(0)\n  k = f32[1,1,2] parameter(1)\n"
                   f"  ROOT c = f32[1,1,{made}] convolution(x, k), window={{size=2 pad={pad}}}, dim_labels=bf0_oi0->bf0")


def grouped(special: bool) -> Program:
    return program("x = f32[1,2,5] parameter(0)\n  k = f32[4,1,2] parameter(1)\n"
                   "  ROOT c = f32[1,4,4] convolution(x, k), window={size=2}, dim_labels=bf0_oi0->bf0, feature_group_count=2", special=special)


def selection(window: str, made: str) -> Program:
    return program(f"x = f32[4,4] parameter(0)\n  s = f32[{made}] parameter(1)\n  z = f32[] constant(0)\n"
                   f"  ROOT c = f32[4,4] select-and-scatter(x, s, z), window={{{window}}}, select=c0, scatter=c1", GREATER + SUM)


def slices(between: str, outer: str, helpers: str = "") -> Program:
    """``x`` is an inner slice, ``y`` what is made of it, and the outer slice reads ``y``."""
    return program("p = f32[2,8] parameter(0)\n  i = s32[] parameter(1)\n  j = s32[1] parameter(2)\n"
                   f"  x = f32[1,4] dynamic-slice(p, i, i), dynamic_slice_sizes={{1,4}}\n  y = {between}\n  ROOT c = {outer}", helpers)


def zeros(operand: str, dtype: str = "s16") -> Program:
    return program(f"p = {dtype}[] parameter(0)\n  k = {dtype}[] constant(-1)\n  o = {dtype}[] {operand}\n  ROOT c = {dtype}[] count-leading-zeros(o)")


def graph(body: str, special: bool = False, dtype: str = "f32") -> Program:
    constants = "%no : bool = prim::Constant[value=0]()\n  %none : NoneType = prim::Constant()\n  %one : int = prim::Constant[value=1]()\n" \
                "  %six : int = prim::Constant[value=6]()\n  %half : float = prim::Constant[value=0.5]()\n  %yes : bool = prim::Constant[value=1]()\n"
    return Program("torchscript", (Value("x", dtype, (2, 2)),), (), (), Fixed(f"graph(%x : Tensor):\n  {constants}  {body}\n  return (%y)\n"), {}, special)


def converted(number: str, special: bool) -> Program:
    return graph(f"%y : Tensor = aten::to(%x, %{number}, %no, %no, %none)", special)


@pytest.mark.parametrize("cause, given", [
    (CROPS, convolution("-1_2", 5)), (CROPS, convolution("0_-1", 3)), (None, convolution("0_1", 5)),
    (GROUPS, grouped(True)), (None, grouped(False)),
    (SELECTS, selection("size=2x3 stride=2x2 pad=0_0x0_1", "2,2")), (SELECTS, selection("size=2x2 stride=2x2 pad=1_1x0_0", "3,2")),
    (None, selection("size=2x2 stride=2x2", "2,2")), (None, selection("size=1x3 stride=1x2 pad=0_0x0_1", "4,2")),
    (SLICES, slices("f32[1,4] copy(x)", "f32[1,2] dynamic-slice(y, i, i), dynamic_slice_sizes={1,2}")),
    (SLICES, slices("f32[4] reshape(x)", "f32[2] dynamic-slice(y, i), dynamic_slice_sizes={2}")),
    (SLICES, slices("f32[4,1] transpose(x), dimensions={1,0}",
                    "f32[1] gather(y, j), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,1}")),
    (SLICES, slices("f32[] constant(1)", "f32[1,4] scatter(x, j, y), update_window_dims={}, inserted_window_dims={0,1}, "
                    "scatter_dims_to_operand_dims={1}, index_vector_dim=0, to_apply=c1", SUM)),
    (None, slices("f32[1,4] negate(x)", "f32[1,2] dynamic-slice(y, i, i), dynamic_slice_sizes={1,2}")),
    (None, slices("f32[1,4] copy(x)", "f32[1,2] slice(y), slice={[0:1], [1:3]}")),
    (ZEROS, zeros("negate(k)")), (ZEROS, zeros("not(k)", "s4")), (None, zeros("add(k, p)")), (None, zeros("copy(k)", "s64")), (None, zeros("copy(p)")),
    (SPECIAL, converted("one", special=True)), (None, converted("one", special=False)), (None, converted("six", special=True)),
    (SPECIAL, graph("%y : Tensor = prim::Loop(%six, %yes, %x)\n    block0(%i : int, %a : Tensor):\n"
                    "      %b : Tensor = aten::to(%a, %one, %no, %no, %none)\n      -> (%yes, %b)", special=True)),
    (DENORMAL, graph("%y : Tensor = aten::matmul(%x, %x)", special=True, dtype="bf16")),
    (None, graph("%y : Tensor = aten::matmul(%x, %x)", dtype="bf16")), (None, graph("%y : Tensor = aten::matmul(%x, %x)", special=True)),
    (LOST, graph("%a : Tensor = aten::type_as(%x, %x)\n  %y : Tensor = aten::add_(%x, %one, %one)")),
    (LOST, graph("%a : Tensor = aten::dropout(%x, %half, %no)\n  %y : Tensor = aten::neg_(%a)")),
    (None, graph("%a : Tensor = aten::type_as(%x, %x)\n  %y : Tensor = aten::neg(%a)")),
    (None, graph("%a : Tensor = aten::alias(%x)\n  %y : Tensor = aten::neg_(%a)")),
])
def test_a_program_is_left_out_where_a_cause_concerns_it(cause: str | None, given: Program) -> None:
    assert cause_of(given) == cause
    if cause is not None:
        verdict = judge_by_peer(given)
        assert (verdict.kind, verdict.detail, verdict.failed) == ("left-out", cause, False)


def test_a_parameter_of_a_called_computation_may_be_a_constant() -> None:
    called = "c0 {\n  a = s32[] parameter(0)\n  ROOT r = s32[] count-leading-zeros(a)\n}\n"
    assert cause_of(program("p = s32[] parameter(0)\n  ROOT c = s32[] call(p), to_apply=c0", called)) == ZEROS

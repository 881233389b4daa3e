"""Sizes that inputs are given agree on their symbols, and lie within the ranges that the program states."""
from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.expand.symbolic_sizes import check_sizes
from irscope.source import UserError

TEXT = (Path(__file__).parents[1] / "data" / "export" / "net.ep.txt").read_text()
PAIR = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 3]", y: "f32[s1, s0]"):
        add = torch.ops.aten.matmul.default(x, y)
        return (add,)
"""


@pytest.mark.parametrize(("limits", "size", "fits"), [
    ("2, 64", 64, True), ("2, 64", 65, False),
    ("2, 64", 1, True),  # torch states 2 as the least size of all dimensions, and takes a 1
    ("0, 64", 0, True), ("3, 64", 3, True), ("3, 64", 2, False), ("2, int_oo", 1 << 40, True), ("8, int_oo", 7, False), ("8, int_oo", 8, True),
])
def test_a_size_lies_within_its_range(limits: str, size: int, fits: bool) -> None:
    module = irscope.load(TEXT.replace("VR[2, 64]", f"VR[{limits}]")).module()
    if fits:
        check_sizes(module, {"x": (size, 4)})
        return
    low, _, high = limits.partition(", ")
    wanted = f"{low} or more" if high == "int_oo" else f"{low} to {high}"
    with pytest.raises(UserError, match=f"dimension 0 of input x is {size}, outside of the range of s77: {wanted}"):
        check_sizes(module, {"x": (size, 4)})


@pytest.mark.parametrize(("x", "y", "said"), [
    ((2, 3), (5, 2), ""),
    ((2, 3), (5, 4), "s0 is 2 in input x, and 4 in dimension 1 of input y"),
    ((2, 3), None, ""),
    ((2, 3), (5, 2, 1), ""),
])
def test_inputs_agree_on_a_symbol(x: tuple[int, ...], y: tuple[int, ...] | None, said: str) -> None:
    module = irscope.load(PAIR).module()
    shapes = {"x": x} if y is None else {"x": x, "y": y}
    if not said:
        check_sizes(module, shapes)
        return
    with pytest.raises(UserError, match=said):
        check_sizes(module, shapes)

"""FX programs of higher-order operators, with inputs and what numpy gives for them."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.expand.test_fx_programs import inner, module
from tests.expand.torchscript_runs import Array
from tests.expand.torchscript_texts import Program, X


def fx(inputs: str, body: str, graphs: str, *results: Any, **arrays: Array) -> Program:
    return Program(module(inputs, body, graphs), arrays, results)


SIN = inner("sub_0", 'a: "f32[2, 3]"', 'sin: "f32[2, 3]" = torch.ops.aten.sin.default(a)\nreturn (sin,)')
ADD = inner("sub_0", 'a: "f32[2, 3]", b: "f32[2, 3]"', 'add: "f32[2, 3]" = torch.ops.aten.add.Tensor(a, b)\nreturn (add,)')
HIGHER = "torch.ops.higher_order"

PROGRAMS = {
    **{f"{name} of a graph": fx('x: "f32[2, 3]"', f"sub_0 = self.sub_0\nw = {HIGHER}.{name}({before}sub_0, {given})\ng: \"f32[2, 3]\" = w[0]\nreturn (g,)", SIN,
                                np.sin(X), x=X)
       for name, before, given in (
           ("wrap", "", "x"), ("wrap_with_set_grad_enabled", "False, ", "x"), ("tag_activation_checkpoint", "", "x"), ("run_const_graph", "", "(x,)"),
           ("strict_mode", "", "(x,)"), ("hints_wrapper", "", "(x,), {}"), ("invoke_subgraph", "", "'sub_0', x"))},
    "wrap of a graph and a tuple": fx('x: "f32[2, 3]"', f"sub_0 = self.sub_0\nw = {HIGHER}.wrap(sub_0, (x, x))\ng: \"f32[2, 3]\" = w[0]\nreturn (g,)", ADD,
                                      2 * X, x=X),
    "invoke_subgraph of a tuple": fx('x: "f32[2, 3]"', f"sub_0 = self.sub_0\nw = {HIGHER}.invoke_subgraph(sub_0, 'sub_0', (x, x))\n"
                                     "g: \"f32[2, 3]\" = w[0]\nreturn (g,)", ADD, 2 * X, x=X),
    "wrap of nothing": fx('x: "f32[2, 3]"', f"w = {HIGHER}.wrap(x, x)\ng: \"f32[2, 3]\" = w[0]\nreturn (g,)", "", x=X),
    "a wider product": fx('a: "i8[2, 3]", b: "i8[3, 2]"', f'y: "i32[2, 2]" = {HIGHER}.out_dtype(torch.ops.aten.mm.default, torch.int32, a, b)\nreturn (y,)', "",
                          np.full((2, 2), 30000, np.int32),
                          a=np.full((2, 3), 100, np.int8), b=np.full((3, 2), 100, np.int8)),
    "map over no rows": fx('x: "f32[0, 3]"', f"sub_0 = self.sub_0\nm = {HIGHER}.map_impl(sub_0, [x], [])\ng: \"f32[0, 3]\" = m[0]\nreturn (g,)",
                           inner("sub_0", 'a: "f32[3]"', 'sin: "f32[3]" = torch.ops.aten.sin.default(a)\nreturn (sin,)'),
                           np.zeros((0, 3), np.float32), x=np.zeros((0, 3), np.float32)),
    "associative scan of one row": fx('x: "f32[1, 3]"', f"sub_0 = self.sub_0\nm = {HIGHER}.associative_scan(sub_0, [x], ())\ng: \"f32[1, 3]\" = m[0]\nreturn (g,)",
                                      inner("sub_0", 'a: "f32[3]", b: "f32[3]"', 'mul: "f32[3]" = torch.ops.aten.mul.Tensor(a, b)\nreturn [mul]'),
                                      X[:1], x=X[:1]),
    "scan with more operands": fx(
        'x: "f32[2, 3]", k: "f32[3]"', f"sub_0 = self.sub_0\nm = {HIGHER}.scan(sub_0, [k], [x], [k])\ng: \"f32[3]\" = m[0]\nh: \"f32[2, 3]\" = m[1]\nreturn (g, h)",
        inner("sub_0", 's: "f32[3]", r: "f32[3]", e: "f32[3]"',
              'mul: "f32[3]" = torch.ops.aten.mul.Tensor(s, r)\nadd: "f32[3]" = torch.ops.aten.add.Tensor(mul, e)\nreturn [add, mul]'),
        (X[0] * X[0] + X[0]) * X[1] + X[0], np.stack([X[0] * X[0], (X[0] * X[0] + X[0]) * X[1]]), x=X, k=X[0]),
    "scan from the end": fx(
        'x: "f32[2, 3]", k: "f32[3]"', f"sub_0 = self.sub_0\nm = {HIGHER}.scan(sub_0, [k], [x], 1, True, [])\ng: \"f32[3]\" = m[0]\nreturn (g,)",
        inner("sub_0", 's: "f32[3]", r: "f32[3]"', 'mul: "f32[3]" = torch.ops.aten.mul.Tensor(s, r)\nreturn [mul, mul]'), x=X, k=X[0]),
}

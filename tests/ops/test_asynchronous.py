"""Asynchronous computations give what their computation gives, whether its operands are bound at the start or later."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.ops import TypeFault
from tests.ops.running import read, reference, typed

BODY = "f {\n  a = f32[3] parameter(0)\n  b = f32[2] parameter(1)\n  z = f32[] constant(0)\n  p = f32[2,3] broadcast(a), dimensions={1}\n" \
    "  q = f32[2,3] broadcast(b), dimensions={0}\n  ROOT r = f32[2,3] subtract(p, q)\n}\n"
X, Y = np.array([1, 2, 3], np.float32), np.array([10, 20], np.float32)
TYPE = "((f32[3], f32[2]), f32[2,3], u32[])"


@pytest.mark.parametrize("steps", [
    f"s = {TYPE} async-start(x, y), calls=f\n  ROOT d = f32[2,3] async-done(s)",
    f"s = {TYPE} async-start(x, y), calls=f\n  u = {TYPE} async-update(s)\n  ROOT d = f32[2,3] async-done(u)",
    f"s = ((f32[3]), (), u32[]) async-start(x), calls=f\n  u = {TYPE} async-update(s, y)\n  ROOT d = f32[2,3] async-done(u)",
], ids=["at once", "continued", "bound later"])
def test_the_value_of_an_asynchronous_computation(steps: str) -> None:
    module = typed(read(f"HloModule m\n{BODY}ENTRY e {{\n  x = f32[3] parameter(0)\n  y = f32[2] parameter(1)\n  {steps}\n}}\n"))
    assert np.array_equal(reference(module, X, Y)[0], X - Y[:, None])


@pytest.mark.parametrize(("steps", "said"), [
    ("ROOT s = ((f32[3]), f32[2,3], u32[]) async-start(x, y), calls=f", "2 operands bound, but its result lists 1"),
    ("ROOT s = ((f32[2], f32[3]), f32[2,3], u32[]) async-start(y, x), calls=f", "to parameter 0 of f"),
    ("ROOT s = ((f32[3], f32[2]), f32[3,2], u32[]) async-start(x, y), calls=f", "gives f32[2,3]"),
    ("s = ((f32[3]), (), u32[]) async-start(x), calls=f\n  ROOT d = f32[2,3] async-done(s)", "takes 2 parameters, but 1 are bound"),
])
def test_what_does_not_fit_the_computation(steps: str, said: str) -> None:
    module = read(f"HloModule m\n{BODY}ENTRY e {{\n  x = f32[3] parameter(0)\n  y = f32[2] parameter(1)\n  {steps}\n}}\n")
    node = module.main().result()
    assert node.op.infer is not None
    with pytest.raises(TypeFault, match=said.replace("[", r"\[")):
        node.op.infer(node)

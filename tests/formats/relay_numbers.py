"""Running one Relay operator: compiled and by the reference interpreter, which must agree."""
from __future__ import annotations

from typing import Any

import numpy as np

from irscope import api
from irscope.analysis.reference import results
from irscope.analysis.types import check_types
from irscope.expand import expand

Array = np.ndarray[Any, Any]
Operand = Array | np.generic


def program(call: str, *arrays: Operand) -> str:
    """A function of one call, whose operands are ``%x0``, ``%x1``, ..."""
    params = ", ".join(f"%x{i}: Tensor[({', '.join(map(str, a.shape))}), {a.dtype.name}]" for i, a in enumerate(arrays))
    return f"def @main({params}) {{\n  {call}\n}}\n"


def ran(call: str, *arrays: Operand, rtol: float = 1e-5, atol: float = 1e-5) -> list[Array]:
    """The results of a call for these operands."""
    reading = api.load(program(call, *arrays))
    assert reading.ok and not check_types(reading.module()), [f.render() for f in check_types(reading.module())]
    got = [np.asarray(a) for a in api.compile(reading)(*map(np.asarray, arrays))]
    plain = results(expand(reading.module()), arrays)
    for mine, reference in zip(got, plain, strict=True):
        assert mine.shape == reference.shape and mine.dtype == reference.dtype
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine.astype(np.float64), reference.astype(np.float64), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(mine, reference)
    return got


def types(call: str, *arrays: Operand) -> str:
    """The type that a call is inferred to have."""
    return str(api.load(program(call, *arrays)).module().main().result().type)

"""The cells of torch's kernels, which only graphics processors have: their gradients are those of their results, by differences."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.backends.model import ports_of
from irscope.backends.opening import Bindings, opened
from tests.expand.torchscript_runs import graph, module_of
from tests.lower.whole import reference

Array = np.ndarray[Any, Any]


def results(body: str, arrays: dict[str, Array]) -> list[Array]:
    """What a graph gives for arrays, by the reference."""
    made = opened(module_of(graph(body, ", ".join(f"%{name} : Tensor" for name in arrays))), Bindings(arrays, {}, {}), None)
    return reference(made, [arrays[port.name] for port in ports_of(made)[0]])


LSTM = """
    %none : NoneType = prim::Constant()
    %y : Tensor, %c : Tensor, %s : Tensor = aten::_thnn_fused_lstm_cell(%x, %h, %state, %none, %none)
    return (%y, %c, %s)
    """
LSTM_BACK = """
    %no : bool = prim::Constant[value=0]()
    %a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor, %e : Tensor = aten::_thnn_fused_lstm_cell_backward(%gy, %gc, %state, %cy, %s, %no)
    return (%a, %b, %c)
    """
GRU = """
    %none : NoneType = prim::Constant()
    %y : Tensor, %s : Tensor = aten::_thnn_fused_gru_cell(%x, %h, %state, %none, %none)
    return (%y, %s)
    """
GRU_BACK = """
    %no : bool = prim::Constant[value=0]()
    %a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor, %e : Tensor = aten::_thnn_fused_gru_cell_backward(%gy, %s, %no)
    return (%a, %b, %c)
    """


@pytest.mark.parametrize(("gates", "forward", "backward"), [(4, LSTM, LSTM_BACK), (3, GRU, GRU_BACK)])
def test_gradients_are_differences(gates: int, forward: str, backward: str) -> None:
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal((2, 3 * gates)), "h": rng.standard_normal((2, 3 * gates)), "state": rng.standard_normal((2, 3))}
    made = results(forward, given)
    weights = [np.asarray(rng.standard_normal(y.shape)) for y in made[:-1]]
    saved: dict[str, Array] = {"gy": weights[0], **({"gc": weights[1], "state": given["state"], "cy": made[1]} if gates == 4 else {}), "s": made[-1]}
    for name, gradient in zip(given, results(backward, saved), strict=True):
        for place in ((0, 0), (1, 2)):
            ends = []
            for step in (1e-6, -1e-6):
                moved = {key: value.copy() for key, value in given.items()}
                moved[name][place] += step
                ends.append(sum(float((y * w).sum()) for y, w in zip(results(forward, moved)[:-1], weights, strict=True)))
            np.testing.assert_allclose(gradient[place], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-6)

"""The kernels of every template as the slow, obvious interpreter runs them: within their buffers, and with the reference's results."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.lower.interpret import interpret_program
from tests.lower.running import compiled, drawn, entry
from tests.lower.test_templates_attention import attention
from tests.lower.test_templates_contraction import product
from tests.lower.test_templates_convolution import NCHW, NHWC, conv
from tests.lower.test_templates_window import REDUCERS

CASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "product": (product(7, 37, 9, "mk", "kn"), (1,)),
    "transposed product": (product(7, 21, 18, "km", "nk"), ()),
    "inner products": (product(9, 2, 40, "mk", "nk"), ()),
    "padded": (conv("1,6,6,5", "3,3,5,20", "1,6,6,20", "size=3x3 pad=1_1x1_1", NHWC), (1,)),
    "channels first": (conv("1,5,6,6", "20,5,3,3", "1,20,3,3", "size=3x3 stride=2x2 pad=1_1x1_1", NCHW), (1,)),
    "holes": (conv("1,3,3,4", "3,3,4,17", "1,5,5,17", "size=3x3 lhs_dilate=2x2 pad=1_1x1_1", NHWC), ()),
    "few channels": (conv("1,2,5,18", "1,2,3,3", "1,1,5,18", "size=3x3 pad=1_1x1_1", NCHW), (1,)),
    "groups": (conv("1,5,5,8", "3,3,4,36", "1,3,3,36", "size=3x3", NHWC, ", feature_group_count=2"), (1,)),
    "winograd": (conv("1,7,8,16", "3,3,16,17", "1,7,8,17", "size=3x3 pad=1_1x1_1", NHWC), (1,)),
    "winograd of bf16": (conv("1,7,8,16", "3,3,16,17", "1,7,8,17", "size=3x3 pad=1_1x1_1", NHWC).replace("f32", "bf16"), (1,)),
    "depthwise": (conv("1,6,6,20", "3,3,1,20", "1,6,6,20", "size=3x3 pad=1_1x1_1", NHWC, ", feature_group_count=20"), (1,)),
    "depthwise gradient": (conv("2,6,6,20", "2,5,5,20", "2,2,1,20", "size=5x5", "f01b_i01o->01bf", ", batch_group_count=20"), ()),
    "attention": (attention(6, 19), ()),
    "pooling": (entry("""
      x = f32[1,5,6,20] parameter(0)
      i = f32[] constant(-inf)
      ROOT p = f32[1,3,3,20] reduce-window(x, i), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0}, to_apply=f""", REDUCERS["max"]), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_stay_within_their_buffers(name: str) -> None:
    text, fixed = CASES[name]
    module = load(text).module()
    arrays = drawn(module)
    program, _ = compiled(text, {i: arrays[i] for i in fixed})
    results = interpret_program(program, [a for i, a in enumerate(arrays) if i not in fixed])
    for result, expected in zip(results, flatten(evaluate(module.main(), arrays)), strict=True):
        np.testing.assert_allclose(result.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)

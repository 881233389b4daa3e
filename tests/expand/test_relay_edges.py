"""Operators of Relay at the edges of their domains: what they compute there, and what they refuse."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.source import UserError
from tests.expand.relay_runs import primitive, run

X = {"x": "Tensor[(2, 4), float32]"}
IMAGE = {"x": "Tensor[(2, 4, 4, 4), float32]", "r": "Tensor[(1, 5), float32]"}


def program(body: str, params: dict[str, str]) -> str:
    return f'#[version = "0.0.5"]\ndef @main({", ".join(f"%{name}: {type}" for name, type in params.items())}) {{\n  {body}\n}}\n'


REFUSED: list[tuple[str, dict[str, str], str]] = [
    ("split(%x, indices_or_sections=-2)", X, "-2 parts do not divide"),
    ("fixed_point_multiply(%x, multiplier=3, shift=-1000000000000)", {"x": "Tensor[(6), int32]"}, "leaves no bit"),
    ('arange(0f64, 1e308f64, 1e-300f64, dtype="float64")', {}, "no finite length"),
    ("expand_dims(%x, axis=0, num_newaxis=1000000000)", X, "num_newaxis is from 0 to 1022"),
    ("expand_dims(%x, axis=0, num_newaxis=-1)", X, "num_newaxis is from 0 to 1022"),
    ('%0 = (%x,); einsum(%0, equation="ij->k")', X, "names axes that no term"),
    ("let %b = shape_of(%x); let %z = subtract(%b, %b); strided_set(%x, %x, %z, %b, %z)", X, "strides are not 0"),
    ('nn.mirror_pad(%x, mode="ABC", pad_width=[[1, 0], [0, 0]])', X, "not one of SYMMETRIC, REFLECT"),
    ("vision.yolo_reorg(%x, stride=2)", {"x": "Tensor[(1, 65536, 65536, 64), float32]"}, "a table of"),
    ("vision.roi_align(%x, %r, pooled_size=[2, 2], spatial_scale=1f, sample_ratio=1000000000000)", IMAGE, "a table of"),
    ("vision.roi_pool(%x, %r, pooled_size=[1000000000000, 2], spatial_scale=1f)", IMAGE, "a table of"),
    ("image.crop_and_resize(%x, %b, %i, crop_size=[1099511627776, 2])",
     {**IMAGE, "b": "Tensor[(1, 4), float32]", "i": "Tensor[(1), int32]"}, "a table of"),
    ("image.affine_grid(%t, target_shape=[1, 1099511627776])", {"t": "Tensor[(1, 2, 3), float32]"}, "a table of"),
    ("nn.contrib_conv2d_winograd_without_weight_transform(%x, %u, tile_size=2, padding=[1099511627776, 1099511627776, 0, 0], channels=4, "
     "kernel_size=[3, 3])", {**IMAGE, "u": "Tensor[(4, 4, 4, 4), float32]"}, "a table of"),
    ("trilu(%x, 0, upper=True)", {"x": "Tensor[(3), float32]"}, "2 dimensions or more"),
    ("sequence_mask(%x, %l, axis=0)", {**X, "l": "Tensor[(7), int32]"}, r"valid_length is \(7\)"),
]


@pytest.mark.parametrize(("body", "params", "message"), REFUSED, ids=[body[:50] for body, *_ in REFUSED])
def test_an_operator_says_what_does_not_fit(body: str, params: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        primitive(program(body, params))


def test_an_exclusive_sum_of_no_elements_has_none() -> None:
    (got,) = run(program("cumsum(%x, axis=0, exclusive=True)", {"x": "Tensor[(0), float32]"}), np.zeros(0, np.float32))
    assert got.shape == (0,)

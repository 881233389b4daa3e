"""Relay texts that strangers may write: each is refused in a sentence, or read in time that grows with the text."""
from __future__ import annotations

import pytest

import irscope
from irscope.expand import expand
from irscope.formats.relay.strict import liberties
from irscope.graph import Reading
from irscope.lint import lint_module
from tests.effort import within

KEY = "%k: Tensor[(10), uint64]"
ANCHORS = "%c: Tensor[(1, 2, 4, 4), float32], %b: Tensor[(1, 4, 4, 4), float32], %i: Tensor[(1, 3), float32]"
IMAGE = "%x: Tensor[(1, 1, 4, 4), float32]"
CROP = 'coordinate_transformation_mode="tf_crop_and_resize"'


def read(params: str, body: str) -> Reading:
    return irscope.load(f"def @main({params}) {{ {body} }}\n", format="relay")


@pytest.mark.parametrize(("params", "body"), [
    (ANCHORS, "vision.proposal(%c, %b, %i, scales=[8f], ratios=[1e-320f])"),
    (ANCHORS, "vision.proposal(%c, %b, %i, scales=[8f], ratios=[nanf])"),
    (ANCHORS, "vision.proposal(%c, %b, %i, scales=[0f], ratios=[1f])"),
    (KEY, "random.threefry_generate(%k, out_shape=[4294967296, 4294967296])"),
    (KEY, "random.threefry_generate(%k, out_shape=[0])"),
    (KEY + ", %p: Tensor[(4), float32]", "random.multinomial(%k, %p, num_samples=-1)"),
    ("%x: Tensor[(0), float32]", "split(%x, indices_or_sections=60000000)"),
    ("%x: Tensor[(1, 32), uint32]", 'nn.bitpack(%x, bits=1000000000, pack_axis=1, bit_axis=0, pack_type="uint32")'),
    ("%x: Tensor[(1, 1, 1, 1), float32]", "nn.correlation(%x, %x, max_displacement=10000, padding=[10000, 10000])"),
    ("%x: Tensor[(1, 1, 100000, 1), float32], %w: Tensor[(1, 100000, 1), float32]", "image.dilation2d(%x, %w)"),
    ("%x: Tensor[(200000, 200000), float32], %w: Tensor[(200001, 200000), float32]", "matrix_set_diag(%x, %w, k1=-100000, k2=100000)"),
    ("%x: Tensor[(1, 2, 3000000), float32], %v: Tensor[(1), int32], %i: Tensor[(1, 2), int32]",
     "vision.non_max_suppression(%x, %v, %i, -1, 0.5f)"),
    ("%x: Tensor[(4, 300000), int32], %p: Tensor[(300000), int32]", "sparse_reshape(%x, %p, %p)"),
    ("%x: Tensor[(4), float32]", 'nn.pad(%x, pad_width=[[60000000, 0]], pad_mode="edge")'),
    (IMAGE, 'image.resize2d(%x, size=[60000000, 1], method="nearest_neighbor")'),
    (IMAGE, f"image.resize2d(%x, size=[8, 8], roi=[inff, 0f, 1f, 1f], {CROP})"),
    (IMAGE, f'image.resize2d(%x, size=[8, 8], roi=[-9f, -9f, -8f, -8f], method="cubic", cubic_exclude=1, {CROP})'),
    ("%x: Tensor[(1, 2, 3), float32]", "image.affine_grid(%x, target_shape=[8000, 8000])"),
    ("%x: Tensor[(1, 4, 4000, 4000), float32]", "vision.yolo_reorg(%x, stride=2)"),
    ("%x: Tensor[(1, 2, 3), float32]", f'layout_transform(%x, src_layout="NHW", dst_layout="NHW{"9" * 5000}h")'),
    ("%x: Tensor[(1, 2, 3), float32]", 'layout_transform(%x, src_layout="NHW", dst_layout="NHW4c")'),
    ("%x: Tensor[(1, 2, 3, 4), float32], %w", 'nn.conv2d(%x, %w, kernel_layout="OIhw", kernel_size=[3], channels=4)'),
    ("%x: Tensor[(1), float32], %w", 'nn.conv2d_transpose(%x, %w, data_layout="NC", kernel_layout="IO", kernel_size=[3], channels=4)'),
    ("%x: Tensor[(1, 2, 3, 4), float32], %w", "nn.conv2d_transpose(%x, %w, kernel_layout=None, kernel_size=[3, 3], channels=4)"),
    ("%x: Tensor[(1, 4), float32], %d: Tensor[(2, 1, 0), float32], %i: Tensor[(2), int32], %p: Tensor[(3), int32]",
     "nn.sparse_dense(%x, %d, %i, %p)"),
    ("%x: Tensor[(2), float32]", "hlo.reduce(%x, 0f, dimensions=[0], bodies=5) /* ty=float32 */"),
    ("%x: Tensor[(1), float32]", f"meshgrid(({', '.join(['%x'] * 9000)}))"),
    ("%x: Tensor[(1), float32]", f'einsum(({", ".join(["%x"] * 9000)}), equation="{",".join(["a"] * 9000)}")'),
    ("%x: Tensor[(1), float32]", "".join(f"%{i} = expand_dims({f'%{i - 1}' if i else '%x'}, axis=0, num_newaxis=1024); " for i in range(900))
     + "%899"),
])
def test_calls_that_do_not_fit_end_in_time(params: str, body: str) -> None:
    with within(5):
        module = read(params, body).module()
        assert module.main().root is not None
        for node in module.main().nodes:
            if node.op.cost is not None:
                node.op.cost(node)


@pytest.mark.parametrize("body", ["(%x, int8(300))", "(%x, uint8(-1))", "(%x, int64(1e400))", "(%x, [5000000000])", "sum(%x, axis=-info)"])
def test_numbers_that_no_element_type_has_are_refused(body: str) -> None:
    assert not read("%x: Tensor[(2, 2), float32]", body).ok


def test_coordinates_of_no_numbers_are_refused() -> None:
    reading = read("%v: Tensor[(1), float32]", "sparse_fill_empty_rows([[]], %v, [], 0f)")
    with pytest.raises(irscope.UserError, match="places of 0 numbers"):
        irscope.compile(reading)


@pytest.mark.parametrize("text", [
    "type a {}\n" + "type a " * 10_000, "/*\n" * 20_000 + "def @main() { 1 }",
    f"def @main({', '.join(f'%a{i}' for i in range(8000))}) {{ %a0 }}",
    "def @main(%x: Tensor[(2), float32]) { if (True) { " + "".join(f"%{i} = abs({f'%{i - 1}' if i else '%x'}); " for i in range(1500))
    + "%1499 } else { abs(%1499)" + " + %1499" * 1500 + " } }",
    "def @main(%x: Tensor[(2), float32]) { " + "".join(f"let %f{i} = fn(%y{i}) {{ " for i in range(30)) + "foo(%x)"
    + "".join(f" }}; let %g{i} = %f{i}(%x); %f{i}(%x)" for i in reversed(range(30))) + " }",
], ids=["types", "comments", "parameters", "copies", "functions"])
def test_reading_takes_time_that_grows_with_the_text(text: str) -> None:
    with within(5):
        irscope.load(text + "\n", format="relay")


def test_values_of_nested_branches_are_copied_once() -> None:
    pairs = "".join(f"if (True) {{ %{1000 + i} = add(%{999 + i}, %{1999 + i}); %{2000 + i} = add(%{999 + i}, %{1999 + i}); " for i in range(1, 40))
    text = ("def @main(%x: Tensor[(2), float32]) { if (True) { %1000 = abs(%x); %2000 = tanh(%x); " + pairs + "add(%1039, %2039)"
            + " } else { abs(%x) }" * 39 + " } else { abs(%1039) } }")
    with within(5):
        irscope.load(text + "\n", format="relay")


def test_liberties_and_spans_are_found_in_one_pass() -> None:
    text = f"def @main(%x: Tensor[(2), float32]) {{ f({','.join(['a'] * 20_000)}) }}"
    spans = "def @main(%x: Tensor[(2), float32]) { abs(%x) /* " + "span=" * 15_000 + " */ }"
    with within(5):
        liberties(irscope.load(text + "\n", format="relay").module())
        module = irscope.load(spans + "\n", format="relay").module()
        assert module.provenance.scope(module.main().nodes[-1].loc) == ""


def test_a_tuple_of_unknown_types_nests_up_to_a_limit() -> None:
    """Its type says nothing of its levels, so that an operator that takes it finds out."""
    lines = "".join(f"%t{i} = (%1, %t{i - 1}); " for i in range(1, 900))
    reading = read("%x: Tensor[(1, 1, 7), int64]", "%1 = strided_slice(%x, begin=[0, 0, 6], end=[1, 1, 7], strides=[2, 1, 2]); "
                   f"%t0 = (%1, %1); {lines}concatenate(%t899, axis=0)")
    with pytest.raises(irscope.UserError, match="concatenate: an operand is a tuple of more than 200 levels"):
        expand(reading.module())
    assert lint_module(reading.module()) == []

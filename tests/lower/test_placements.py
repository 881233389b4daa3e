"""One value read twice by one kernel: each operand position finds it where that position's offset and strides say.

The placements that differ: an image with zeros around it for a window, the caller's order for what is added, panels for a product. The
readers behind ask for the result in places of their own: inside of padding, beside other parts, in the room of the next convolution.
"""
from __future__ import annotations

import numpy as np
import pytest

from irscope.backends.comparison import compare
from irscope.backends.model import compile_module
from irscope.expand import expand
from irscope.lower.options import Options
from tests.lower.whole import ADD, MAX, check, entry, inputs_of, module_of, reference

NCHW, NHWC = "bf01_oi01->bf01", "b01f_01io->b01f"


def residual(layout: str, batch: int, channels: int, joined: str, reader: str, size: int = 8) -> str:
    """``f`` convolved, joined with ``f`` itself, and read in a place of its own."""
    first = layout == NCHW
    x = f"{batch},{channels},{size},{size}" if first else f"{batch},{size},{size},{channels}"
    w = f"{channels},{channels},3,3" if first else f"3,3,{channels},{channels}"
    conv = f"window={{size=3x3 pad=1_1x1_1}}, dim_labels={layout}"
    h, c = (2, 1) if first else (1, 3)

    def wider(axis: int, by: int) -> str:
        return ",".join(str(int(n) + by if d == axis else int(n)) for d, n in enumerate(x.split(",")))

    joining = {
        "sum": f"a = f32[{x}] add(c, f)",
        "product": f"a = f32[{x}] multiply(c, f)",
        "silu": f"g = f32[{x}] logistic(c)\n m = f32[{x}] multiply(c, g)\n a = f32[{x}] add(m, f)",
    }[joined]
    padded = f"{batch},{channels},{size + 2},{size + 2}" if first else f"{batch},{size + 2},{size + 2},{channels}"
    around = "0_0x0_0x1_1x1_1" if first else "0_0x1_1x1_1x0_0"
    reading = {
        "plain": f"ROOT r = f32[{x}] negate(a)",
        "pad": f"z = f32[] constant(0)\n ROOT r = f32[{padded}] pad(a, z), padding={around}",
        "conv": f"ROOT r = f32[{x}] convolution(a, w), {conv}",
        "residual conv": f"d = f32[{x}] convolution(a, w), {conv}\n ROOT r = f32[{x}] add(d, a)",
        "features": f"ROOT r = f32[{wider(c, channels)}] concatenate(f, a), dimensions={{{c}}}",
        "rows": f"ROOT r = f32[{wider(h, size)}] concatenate(a, f), dimensions={{{h}}}",
        "columns": f"ROOT r = f32[{wider(h + 1, size)}] concatenate(a, f), dimensions={{{h + 1}}}",
        "images": f"ROOT r = f32[{wider(0, batch)}] concatenate(f, a), dimensions={{0}}",
        "turned": f"t = f32[{','.join(x.split(',')[d] for d in (3, 0, 1, 2))}] transpose(a), dimensions={{3,0,1,2}}\n"
                  f" ROOT r = f32[{','.join(x.split(',')[d] for d in (3, 0, 1, 2))}] negate(t)",
        "pooling": f"z = f32[] constant(0)\n ROOT r = f32[{x}] reduce-window(a, z), "
                   f"window={{size={'1x1x3x3' if first else '1x3x3x1'} pad={around}}}, to_apply=sum",
    }[reader]
    return entry(f"f = f32[{x}] parameter(0)\n w = f32[{w}] parameter(1)\n c = f32[{x}] convolution(f, w), {conv}\n {joining}\n {reading}", ADD)


READERS = ("plain", "pad", "conv", "residual conv", "features", "rows", "columns", "images", "turned", "pooling")


@pytest.mark.parametrize("layout", [NCHW, NHWC])
@pytest.mark.parametrize("reader", READERS)
def test_what_a_convolution_reads_is_joined_with_its_result(layout: str, reader: str) -> None:
    check(residual(layout, 1, 16, "sum", reader), runs=1)


@pytest.mark.parametrize(("layout", "batch", "channels", "joined", "reader", "weights"), [
    (NCHW, 2, 16, "sum", "pad", ()), (NHWC, 2, 16, "sum", "features", ()), (NCHW, 1, 5, "product", "conv", ()),
    (NHWC, 1, 17, "silu", "rows", (1,)), (NCHW, 2, 17, "silu", "residual conv", (1,)), (NHWC, 2, 5, "product", "pad", (1,)),
    (NCHW, 1, 16, "sum", "conv", (1,)), (NHWC, 1, 32, "sum", "residual conv", (1,)), (NCHW, 1, 1, "sum", "pad", ()),
])
def test_batches_channels_and_what_joins(layout: str, batch: int, channels: int, joined: str, reader: str, weights: tuple[int, ...]) -> None:
    check(residual(layout, batch, channels, joined, reader), weights=weights, runs=1)


CONVOLUTIONS = {  # (shape of p, shape of the result, window, dimension labels, attributes)
    "few channels": ("3,3,4,4", "3,3,4,4", "size=3x3 pad=1_1x1_1", NHWC, ""),
    "half a vector": ("3,3,8,8", "3,3,8,8", "size=3x3 pad=1_1x1_1", NHWC, ""),
    "two vectors": ("3,3,32,32", "3,3,32,32", "size=3x3 pad=1_1x1_1", NHWC, ""),
    "channels first": ("6,6,3,3", "6,6,3,3", "size=3x3 pad=1_1x1_1", NCHW, ""),
    "many channels first": ("20,20,3,3", "20,20,3,3", "size=3x3 pad=1_1x1_1", NCHW, ""),
    "holes": ("3,3,6,6", "3,5,11,6", "size=3x3 lhs_dilate=2x2 pad=1_1x1_1", NHWC, ""),
    "dilated": ("3,3,6,6", "3,3,6,6", "size=3x3 rhs_dilate=2x2 pad=2_2x2_2", NHWC, ""),
    "reversed": ("3,3,6,6", "3,3,6,6", "size=3x3 pad=1_1x1_1 rhs_reversal=1x1", NHWC, ""),
    "one side": ("3,3,4,4", "3,3,4,4", "size=3x3 pad=0_2x2_0", NHWC, ""),
    "one result": ("1,2,3,3", "1,1,3,3", "size=3x3 pad=1_1x1_1", NCHW, ""),
    "one dimension": ("3,5,5", "3,5,5", "size=3 pad=1_1", "b0f_0io->b0f", ""),
    "depthwise": ("3,3,1,20", "3,3,1,20", "size=3x3 pad=1_1x1_1", NHWC, ", feature_group_count=20"),
    "unpadded": ("2,2,8,8", "2,1,7,8", "size=2x2", NHWC, ""),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("computed", [False, True])
def test_one_value_is_data_and_kernel_of_a_convolution(name: str, computed: bool) -> None:
    """Given by the caller, and computed here, where its home has the zeros around it."""
    shape, out, window, labels, more = CONVOLUTIONS[name]
    made = f"q = f32[{shape}] parameter(0)\n p = f32[{shape}] tanh(q)\n" if computed else f"p = f32[{shape}] parameter(0)\n"
    result = f"f32[{out}] convolution(p, p), window={{{window}}}, dim_labels={labels}{more}"
    check(entry(made + f"ROOT c = {result}"), runs=1)
    check(entry(made + f"c = {result}\n ROOT r = f32[{out}] tanh(c)"), runs=1)


@pytest.mark.parametrize("labels", [NHWC, "b01f_01io->bf01"])
@pytest.mark.parametrize("weights", [(), (1,)])
def test_a_depthwise_convolution_is_joined_with_what_it_reads(labels: str, weights: tuple[int, ...]) -> None:
    """Convolutional position encodings."""
    out, turned = ("1,6,7,20", "") if labels == NHWC else ("1,20,6,7", "f32[1,20,6,7] transpose(f), dimensions={0,3,1,2}")
    text = entry(f"""
      f = f32[1,6,7,20] parameter(0)
      w = f32[3,3,1,20] parameter(1)
      v = {turned or f"f32[{out}] copy(f)"}
      c = f32[{out}] convolution(f, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels={labels}, feature_group_count=20
      a = f32[{out}] add(c, v)
      m = f32[{out}] multiply(a, v)
      ROOT r = f32[2,{out[2:]}] concatenate(m, v), dimensions={{0}}""")
    check(text, weights=weights, runs=1)


# What reads a value beside the convolution that has it in a home with zeros around it: f32[2,6,7,20].
BESIDE: dict[str, str] = {
    "product": "y = f32[2,6,7,2,6,7] dot(x, x), lhs_contracting_dims={3}, rhs_contracting_dims={3}",
    "batched product": "y = f32[2,20,6,6] dot(x, x), lhs_batch_dims={0,3}, rhs_batch_dims={0,3}, lhs_contracting_dims={2}, "
                       "rhs_contracting_dims={2}",
    "sum of channels": "z = f32[] constant(0)\n y = f32[2,6,7] reduce(x, z), dimensions={3}, to_apply=sum",
    "sum of pixels": "z = f32[] constant(0)\n y = f32[2,20] reduce(x, z), dimensions={1,2}, to_apply=sum",
    "everything": "z = f32[] constant(0)\n y = f32[] reduce(x, z), dimensions={0,1,2,3}, to_apply=sum",
    "transposition": "y = f32[20,7,6,2] transpose(x), dimensions={3,2,1,0}",
    "reshape": "y = f32[84,20] reshape(x)",
    "reshape of a slice": "s = f32[2,5,6,20] slice(x), slice={[0:2],[1:6],[0:6],[0:20]}\n y = f32[60,20] reshape(s)",
    "reverse": "y = f32[2,6,7,20] reverse(x), dimensions={1,2,3}",
    "strided slice": "y = f32[2,3,3,7] slice(x), slice={[0:2],[0:6:2],[1:7:2],[0:20:3]}",
    "broadcast": "y = f32[2,6,3,7,20] broadcast(x), dimensions={0,1,3,4}",
    "concatenation with itself": "y = f32[2,12,7,20] concatenate(x, x), dimensions={1}",
    "pad": "z = f32[] constant(2)\n y = f32[2,9,8,20] pad(x, z), padding=0_0x1_2x1_0x0_0",
    "pad with holes": "z = f32[] constant(2)\n y = f32[2,11,8,20] pad(x, z), padding=0_0x0_0_1x1_0x0_0",
    "gather": "i = s32[3] parameter(2)\n y = f32[3,2,7,20] gather(x, i), offset_dims={1,2,3}, collapsed_slice_dims={1}, "
              "start_index_map={1}, index_vector_dim=1, slice_sizes={2,1,7,20}",
    "dynamic slice": "i = s32[] parameter(2)\n z = s32[] constant(0)\n "
                     "y = f32[2,2,7,20] dynamic-slice(x, z, i, z, z), dynamic_slice_sizes={2,2,7,20}",
    "update of itself": "i = s32[] parameter(2)\n z = s32[] constant(0)\n s = f32[2,2,7,20] slice(x), slice={[0:2],[3:5],[0:7],[0:20]}\n "
                        "y = f32[2,6,7,20] dynamic-update-slice(x, s, z, i, z, z)",
    "update by itself": "i = s32[] parameter(2)\n z = s32[] constant(0)\n y = f32[2,6,7,20] dynamic-update-slice(x, x, z, i, z, z)",
    "scatter into itself": "i = s32[1] parameter(2)\n s = f32[2,1,7,20] slice(x), slice={[0:2],[3:4],[0:7],[0:20]}\n "
                           "u = f32[1,2,7,20] transpose(s), dimensions={1,0,2,3}\n y = f32[2,6,7,20] scatter(x, i, u), "
                           "update_window_dims={1,2,3}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, "
                           "to_apply=sum",
    "pooling": "z = f32[] constant(-inf)\n y = f32[2,6,7,20] reduce-window(x, z), window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, to_apply=most",
    "pooling joined": "z = f32[] constant(0)\n p = f32[2,6,7,20] reduce-window(x, z), window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, "
                      "to_apply=sum\n y = f32[2,6,7,20] subtract(p, x)",
    "window over channels": "z = f32[] constant(0)\n y = f32[2,6,7,20] reduce-window(x, z), window={size=1x1x1x3 pad=0_0x0_0x0_0x2_0}, "
                            "to_apply=sum",
    "sort": "y = f32[2,6,7,20] sort(x), dimensions={2}, to_apply=less",
    "two convolutions": "y = f32[2,8,9,20] convolution(x, w), window={size=3x3 pad=2_2x2_2}, dim_labels=b01f_01io->b01f",
    "strided convolution": "y = f32[2,3,4,20] convolution(x, w), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
    "kernel of a convolution": "v = f32[1,7,9,20] parameter(2)\n y = f32[1,4,6,2] convolution(v, x), window={size=6x7 pad=1_1x1_2}, "
                              "dim_labels=b01f_o01i->b01f",
    "framed and plain": "y = f32[2,6,7,20] subtract(x, q)",
    "transposed and plain": "s = f32[2,7,6,20] transpose(x), dimensions={0,2,1,3}\n o = f32[2,6,7,20] reshape(s)\n "
                            "y = f32[2,6,7,20] add(x, o)",
    "softmax": "z = f32[] constant(-inf)\n h = f32[2,6,7] reduce(x, z), dimensions={3}, to_apply=most\n "
               "b = f32[2,6,7,20] broadcast(h), dimensions={0,1,2}\n y = f32[2,6,7,20] subtract(x, b)",
    "loop": "i = s32[] constant(0)\n s = (s32[], f32[2,6,7,20]) tuple(i, x)\n l = (s32[], f32[2,6,7,20]) while(s), condition=go, body=step\n "
            "y = f32[2,6,7,20] get-tuple-element(l), index=1",
    "branch": "g = pred[] constant(true)\n y = f32[2,6,7,20] conditional(g, x, x), true_computation=first, false_computation=second",
}
BODIES = ADD + MAX + """
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = pred[] compare(a, b), direction=LT }
go { s = (s32[], f32[2,6,7,20]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(3)
 ROOT r = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[2,6,7,20]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[2,6,7,20] get-tuple-element(s), index=1
 o = s32[] constant(1)
 n = s32[] add(i, o)
 m = f32[2,6,7,20] reverse(x), dimensions={2}
 a = f32[2,6,7,20] add(x, m)
 ROOT r = (s32[], f32[2,6,7,20]) tuple(n, a) }
first { x = f32[2,6,7,20] parameter(0)
 ROOT r = f32[2,6,7,20] negate(x) }
second { x = f32[2,6,7,20] parameter(0)
 ROOT r = f32[2,6,7,20] reverse(x), dimensions={1} }
"""


@pytest.mark.parametrize("name", BESIDE)
def test_every_reader_of_a_value_with_zeros_around_it(name: str) -> None:
    """``x`` is the image of a convolution, and is joined with its result; another operator reads it too."""
    result = BESIDE[name].split("y = ")[1].split("(")[0].rsplit(" ", 1)[0]
    conv = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    text = entry(f"""
      q = f32[2,6,7,20] parameter(0)
      w = f32[3,3,20,20] parameter(1)
      x = f32[2,6,7,20] tanh(q)
      c = f32[2,6,7,20] convolution(x, w), {conv}
      a = f32[2,6,7,20] add(c, x)
      d = f32[2,6,7,20] convolution(a, w), {conv}
      {BESIDE[name]}
      ROOT r = (f32[2,6,7,20], {result}) tuple(d, y)""", BODIES)
    arrays = inputs_of(module_of(text))
    for array in arrays:
        if array.dtype == np.int32:
            array[...] = np.arange(array.size).reshape(array.shape) * 2 + 1
    check(text, arrays, runs=1)


PRODUCTS: dict[str, tuple[str, str]] = {  # shape of p, product of p with itself
    "square": ("9,9", "f32[9,9] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "with its transpose": ("9,21", "f32[9,9] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    "of columns": ("21,9", "f32[9,9] dot(p, p), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "batches": ("3,17,5", "f32[3,17,17] dot(p, p), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                          "rhs_contracting_dims={2}"),
    "along batches": ("5,5,40", "f32[40,5,5] dot(p, p), lhs_batch_dims={2}, rhs_batch_dims={2}, lhs_contracting_dims={1}, "
                                "rhs_contracting_dims={0}"),
    "all of it": ("40", "f32[] dot(p, p), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("weights", [(), (0,)])
def test_products_of_a_value_with_itself(name: str, weights: tuple[int, ...]) -> None:
    shape, product = PRODUCTS[name]
    out = product.split(" ")[0]
    check(entry(f"p = f32[{shape}] parameter(0)\n d = {product}\n ROOT r = {out} tanh(d)"), weights=weights, runs=1)
    check(entry(f"q = f32[{shape}] parameter(0)\n p = f32[{shape}] tanh(q)\n ROOT d = {product}"), runs=1)


def test_a_product_is_joined_with_its_own_operands() -> None:
    check(entry("""
      p = f32[17,17] parameter(0)
      d = f32[17,17] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      t = f32[17,17] transpose(p), dimensions={1,0}
      a = f32[17,17] add(d, p)
      b = f32[17,17] multiply(a, t)
      ROOT r = f32[17,34] concatenate(b, p), dimensions={1}"""), runs=1)


def test_attention_of_one_value_with_itself() -> None:
    """Queries, keys and values are one array, which is added to the result."""
    check(entry("""
      x = f32[2,24,16] parameter(0)
      low = f32[] constant(-inf)
      zero = f32[] constant(0)
      s = f32[2,24,24] dot(x, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
      m = f32[2,24] reduce(s, low), dimensions={2}, to_apply=most
      mb = f32[2,24,24] broadcast(m), dimensions={0,1}
      e = f32[2,24,24] subtract(s, mb)
      p = f32[2,24,24] exponential(e)
      t = f32[2,24] reduce(p, zero), dimensions={2}, to_apply=sum
      tb = f32[2,24,24] broadcast(t), dimensions={0,1}
      q = f32[2,24,24] divide(p, tb)
      o = f32[2,24,16] dot(q, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
      a = f32[2,24,16] add(o, x)
      z = f32[] constant(0)
      ROOT r = f32[2,26,16] pad(a, z), padding=0_0x1_1x0_0""", ADD + MAX), runs=1)


@pytest.mark.parametrize("text", [
    residual(NCHW, 1, 16, "sum", "residual conv"), residual(NHWC, 2, 17, "product", "pad"),
    entry("p = f32[3,3,32,32] parameter(0)\n ROOT c = f32[3,3,32,32] convolution(p, p), window={size=3x3 pad=1_1x1_1}, dim_labels=" + NHWC),
], ids=["residual", "product", "itself"])
def test_threads_give_the_same_bits(text: str) -> None:
    module = module_of(text)
    arrays = inputs_of(module)
    one, two = (compile_module(module, {}, Options(threads=n), use_cache=False)(*arrays) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


SLICED = """HloModule m

ENTRY main {
  x = f32[1,17,16] parameter(0)
  head = f32[1,1,16] slice(x), slice={[0:1], [0:1], [0:16]}
  tail = f32[1,16,16] slice(x), slice={[0:1], [1:17], [0:16]}
  t = f32[1,16,16] transpose(tail), dimensions={0,2,1}
  f = f32[1,16,4,4] reshape(t)
  w = f32[16,16,3,3] parameter(1)
  c = f32[1,16,4,4] convolution(f, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
  a = f32[1,16,4,4] add(c, f)
  s = f32[1,16,16] reshape(a)
  b = f32[1,16,16] transpose(s), dimensions={0,2,1}
  ROOT y = f32[1,17,16] concatenate(head, b), dimensions={1}
}
"""
"""A position encoding of image patches behind a class token."""

RELAY = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 28, 28, 32), float32], %weight: Tensor[(3, 3, 32, 32), float32]) {
  %0 = nn.conv2d(%weight, %weight, padding=[1, 1], channels=32, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");
  strided_slice(%0, begin=[0, 16], end=[1, 33], strides=[1, 1], axes=[0, 3])
}
"""

TORCHSCRIPT = """graph(%x : Float(1, 16, 6, 6, strides=[576, 36, 6, 1], requires_grad=0, device=cpu),
      %w : Float(16, 16, 3, 3, strides=[144, 9, 3, 1], requires_grad=0, device=cpu)):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %c : Tensor = aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %one)
  %a : Tensor = aten::add(%c, %x, %one)
  %both : Tensor[] = prim::ListConstruct(%x, %a)
  %y : Tensor = aten::cat(%both, %one)
  return (%y)
"""


@pytest.mark.parametrize("text", [SLICED, RELAY, TORCHSCRIPT], ids=["HLO", "Relay", "TorchScript"])
def test_texts_of_every_format(text: str) -> None:
    module = module_of(text)
    arrays = inputs_of(module)
    (got,) = compile_module(module, {}, Options(), use_cache=False)(*arrays)
    (wanted,) = reference(expand(module), arrays)
    assert compare("out0", got, wanted).fault is None


@pytest.mark.parametrize("channels", [4, 8, 24])
def test_a_kernel_is_shared_with_the_room_around_its_operands(channels: int) -> None:
    """Two convolutions of one structure share a kernel, whose frame lies in memory of the kernel's own: the second launch gets it whole."""
    def layer(x: str, y: str, weights: str) -> str:
        shape = f"f32[1,{channels},4,4]"
        return f"""
            {y}f = f32[1,{channels},16] transpose({x}), dimensions={{0,2,1}}
            {y}i = {shape} reshape({y}f)
            {y}c = {shape} convolution({y}i, {weights}), window={{size=3x3 pad=1_1x1_1}}, dim_labels=bf01_oi01->bf01, feature_group_count={channels}
            {y}s = {shape} add({y}i, {y}c)
            {y}g = f32[1,{channels},16] reshape({y}s)
            {y} = f32[1,16,{channels}] transpose({y}g), dimensions={{0,2,1}}
        """
    check(entry(f"""
        x = f32[1,16,{channels}] parameter(0)
        v = f32[{channels},1,3,3] parameter(1)
        w = f32[{channels},1,3,3] parameter(2)
        {layer("x", "a", "v")}
        n = f32[1,16,{channels}] abs(a)
        b = f32[1,16,{channels}] add(a, n)
        {layer("b", "c", "w")}
        ROOT r = f32[1,16,{channels}] negate(c)
    """))


def test_a_view_that_a_branch_takes_is_not_updated_before_its_last_reader() -> None:
    """The branch has the broadcast stored; the product reads what is stored, behind an update that may take its memory no more."""
    branch = "{ s = (f32[3], f32[3]) parameter(0)\n x = f32[3] get-tuple-element(s), index=1\n ROOT r = f32[3] %s(x) }\n"
    check(entry("""
        which = s32[] parameter(0)
        new = f32[1] parameter(1)
        i = s32[] parameter(2)
        a = f32[3] parameter(3)
        one = f32[] parameter(4)
        all = f32[3] broadcast(one), dimensions={}
        both = (f32[3], f32[3]) tuple(a, all)
        taken = f32[3] conditional(which, both, both), branch_computations={first, second}
        updated = f32[3] dynamic-update-slice(all, new, i)
        product = f32[3] multiply(all, updated)
        ROOT r = (f32[3], f32[3]) tuple(taken, product)
    """, f"first {branch % 'negate'}second {branch % 'abs'}"))

"""Tensors from nothing but numbers: constants, ranges, windows, random numbers."""
from __future__ import annotations

from math import ceil, prod

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.attributes import Sparse
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator, refused
from irscope.formats.relay.algebra import table_of
from irscope.formats.relay.operators.creation import within
from irscope.graph import Node, TensorType, without_array
from irscope.graph.dtypes import F32, F64, S64
from irscope.lazy import Array, np
from irscope.ops.attrs import Literal
from irscope.ops.checked import at_least, nonzero, real
from irscope.ops.faults import TypeFault
from irscope.source.budget import require


@operator("Constant(; value: tensor=None, sparse_value: sparse=None, value_float: float=None, value_floats: floats=None, "
          "value_int: int=None, value_ints: ints=None, value_string: str=None, value_strings: strs=None)")
def constant(t: Onnx, a: Attributes) -> Node:
    """A tensor, dense or sparse, or numbers."""
    if a.value is not None:
        return literal(t, a.value)
    if isinstance(a.sparse_value, Sparse):
        return dense(t, a.sparse_value)
    for value, dtype in ((a.value_float, F32), (a.value_floats, F32), (a.value_int, S64), (a.value_ints, S64)):
        if value is not None:
            return t.array(value, dtype)
    raise TypeFault("the constant has no value, or strings, which are not computed")


def literal(t: Onnx, value: Literal) -> Node:
    """The node of a literal."""
    if not isinstance(value.type, TensorType):
        raise TypeFault("strings are not computed")
    return t.emit("constant", (), {"literal": value}, type=value.type)


def dense(t: Onnx, sparse: Sparse) -> Node:
    """A sparse tensor with zeros filled in."""
    type = sparse.values.type
    if not isinstance(type, TensorType):
        raise TypeFault("strings are not computed")
    if min(sparse.shape, default=0) < 0:
        raise TypeFault(f"the shape {list(sparse.shape)} has a negative size")
    if why := without_array(type.with_shape(sparse.shape)):
        raise TypeFault(f"a sparse constant {why}")
    require(table_of(prod(sparse.shape)) * type.dtype.storage, "a sparse constant")
    made = np.zeros(sparse.shape, type.dtype.numpy())
    made.reshape(-1)[_places(sparse, type)] = sparse.values.value().reshape(-1)
    return t.array(made, type.dtype)


def _places(sparse: Sparse, values: TensorType) -> Array:
    """The linear places of the values. Raises TypeFault for one outside of the shape, and where each value does not have one."""
    form = sparse.indices.type
    if not isinstance(form, TensorType) or not form.dtype.is_integer:
        raise TypeFault("the indices of a sparse constant are integers")
    count, rank = values.elements, len(sparse.shape)
    if form.shape not in ((count,), (count, rank)):
        raise TypeFault(f"a sparse constant of {count} values has indices of the shape [{count}] or [{count}, {rank}], not "
                        f"{list(form.shape)}")
    indices = np.asarray(sparse.indices.value()).astype(np.int64)
    bounds = np.array(sparse.shape, np.int64) if len(form.shape) == 2 else prod(sparse.shape)
    if ((indices < 0) | (indices >= bounds)).any():
        raise TypeFault(f"an index of a sparse constant is outside of its shape {list(sparse.shape)}")
    if len(form.shape) == 1:
        return indices
    steps = [prod(sparse.shape[d + 1:]) for d in range(rank)]
    linear: Array = indices @ np.array(steps, np.int64)
    return linear


@operator("ConstantOfShape(input: int[0-1]; value: tensor=None)")
def constant_of_shape(t: Onnx, a: Attributes, shape: Node) -> Node:
    """One value in a given shape."""
    sizes = tuple(t.ints(shape, "the shape"))
    if any(n < 0 for n in sizes):
        raise TypeFault(f"the shape {list(sizes)} has a negative size")
    value = literal(t, a.value) if a.value is not None else t.array(0, F32)
    require(prod(sizes) * t.dtype(value).storage, "a constant")
    return t.broadcast_to(t.reshape(value, ()), sizes)


@operator("Range(start: real[0-1], limit: real[0-1], delta: real[0-1]; stash_type: int=None)")
def range_(t: Onnx, a: Attributes, start: Node, limit: Node, delta: Node) -> Node:
    """Numbers from a start to a limit, in steps."""
    t.alike(start, limit, delta)
    dtype = t.dtype(start)
    read = t.number if dtype.is_float else t.single
    low, high, step = (read(v, "a bound of the range or its step") for v in (start, limit, delta))
    nonzero("the step", step)
    steps = (high - low) / step if dtype.is_float else -((low - high) // step)
    real("the bounds of the range and its step", steps)
    count = max(0, ceil(steps))
    require(count * max(8, dtype.storage), "a range")
    wide = dtype if dtype.is_integer or dtype is F64 else F32
    moved = t.mul(t.convert(t.iota((count,), 0, S64), wide), t.convert(t.array(step, dtype), wide))
    return t.convert(t.add(moved, t.convert(t.array(low, dtype), wide)), dtype)


@operator("EyeLike(input: tensor[2]; dtype: int=None, k=0)")
def eye_like(t: Onnx, a: Attributes, x: Node) -> Node:
    """Ones on a diagonal of a matrix of the shape of the operand."""
    shape = t.shape(x)
    if len(shape) != 2:
        raise TypeFault(f"the operand is a matrix, got {list(shape)}")
    on = t.compare("EQ", t.plus(t.iota(shape, 0, S64), a.k), t.iota(shape, 1, S64))
    return t.convert(on, t.numbered(a.dtype, t.dtype(x)))


@operator("Trilu(input: tensor[2+], k?: int[0-1]; upper=1)")
def trilu(t: Onnx, a: Attributes, x: Node, k: Node | None) -> Node:
    """The triangle of matrices on one side of a diagonal, zeros elsewhere."""
    shape, rank = t.shape(x), t.rank(x)
    if rank < 2:
        raise TypeFault("the operand is at least a matrix")
    offset = t.array(0, S64) if k is None else within(t, k, shape)
    rows = t.add(t.iota(shape, rank - 2, S64), t.broadcast_to(offset, shape))
    return t.select(t.compare("LE" if a.upper else "GE", rows, t.iota(shape, rank - 1, S64)), x, t.like(x, 0))


def _window(name: str, weights: tuple[float, float, float]) -> None:
    @operator(f"{name}(size: int[0-1]; output_datatype=1, periodic=1)")
    def window(t: Onnx, a: Attributes, size: Node) -> Node:
        n = t.single(size, "the size")
        bounded(n, "a window")
        turn = 2 * np.pi * np.arange(max(n, 0)) / max(n - (not a.periodic), 1)
        values: Array = weights[0] - weights[1] * np.cos(turn) + weights[2] * np.cos(2 * turn)
        return t.array(values, t.numbered(a.output_datatype, F32))


_window("HannWindow", (0.5, 0.5, 0.0))
_window("HammingWindow", (25 / 46, 21 / 46, 0.0))
_window("BlackmanWindow", (0.42, 0.5, 0.08))


@operator("MelWeightMatrix(num_mel_bins: int[0-1], dft_length: int[0-1], sample_rate: int[0-1], lower_edge_hertz: float[0-1], "
          "upper_edge_hertz: float[0-1]; output_datatype=1)")
def mel_weights(t: Onnx, a: Attributes, bins: Node, length: Node, rate: Node, lower: Node, upper: Node) -> Node:
    """The matrix that maps a spectrum to mel bins, triangles on the mel scale (2595 log10(1 + f / 700))."""
    count, points, hertz = (at_least(1, "a size of the matrix", t.single(v, "a size of the matrix")) for v in (bins, length, rate))
    low, high = (2595 * np.log10(1 + at_least(0, "an edge", t.number(v, "an edge")) / 700) for v in (lower, upper))
    rows = points // 2 + 1
    bounded(rows * count, "a matrix of mel weights")
    edges = low + np.arange(count + 2) * ((high - low) / (count + 2))
    places = np.floor(((points + 1) * (700 * (10 ** (edges / 2595) - 1))) / hertz).astype(np.int64)
    if places.min() < 0 or places.max() > rows or places[1:-1].max() == rows:
        raise TypeFault(f"the edges are between 0 and half of the sample rate, which is {hertz}")
    made = np.zeros((rows, count))
    for i in range(count):
        start, centre, end = (int(v) for v in places[i:i + 3])
        if centre == start:
            made[centre, i] = 1
        for j in range(start, centre + 1):
            made[j, i] = (j - start) / (centre - start) if centre != start else made[j, i]
        for j in range(centre, end):
            made[j, i] = (end - j) / (end - centre)
    return t.array(made, t.numbered(a.output_datatype, F32))


DRAWN = "random numbers are drawn by a generator of the runtime, which ONNX does not define: make them an input of the model"
refused("RandomNormal(; dtype=1, mean=0.0, scale=1.0, seed: float=None, shape: ints!)",
        "RandomNormalLike(input; dtype: int=None, mean=0.0, scale=1.0, seed: float=None)",
        "RandomUniform(; dtype=1, high=1.0, low=0.0, seed: float=None, shape: ints!)",
        "RandomUniformLike(input; dtype: int=None, high=1.0, low=0.0, seed: float=None)",
        "Multinomial(input; dtype=6, sample_size=1, seed: float=None)", "Bernoulli(input; dtype: int=None, seed: float=None)", reason=DRAWN)
TEXTS = "irscope computes no strings: cut the model after this operator"
refused("StringConcat(X, Y)", "StringNormalizer(X; case_change_action='NONE', is_case_sensitive=0, locale='', stopwords: strs=None)",
        "StringSplit(X; delimiter='', maxsplit: int=None)", "RegexFullMatch(X; pattern: str=None)", reason=TEXTS)
refused("ImageDecoder(encoded_stream; pixel_format='RGB')", reason="irscope decodes no images: give the pixels as an input")

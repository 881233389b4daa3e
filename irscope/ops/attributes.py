"""The attributes of the primitives, one typed record per operator: ``Dot.of(node).lhs_contracting_dims``.

Fields have the names and the defaults of HLO's text. A field without a default raises KeyError where the node does not have it; the reader
rejects such nodes. Operators that have the same attributes share a record's base, not its name.
"""
from __future__ import annotations

from typing import Any

from irscope.graph import Type
from irscope.graph.attributes import Attributes, attribute
from irscope.ops.attrs import ConvDims, Literal, ResultAccuracy, Window

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
Triples = tuple[tuple[int, int, int], ...]


class _Dimensions(Attributes):
    __slots__ = ()
    dimensions = attribute[Ints]()


class Broadcast(Attributes):
    """``dimensions[i]`` is the dimension of the result that dimension i of the operand becomes; empty for a scalar."""

    __slots__ = ()
    dimensions = attribute[Ints](())


class Reshape(Attributes):
    """The dimension of the result that becomes dynamic where one of the operand is; -1 where the text does not state it."""

    __slots__ = ()
    inferred_dimension = attribute[int](-1)


class Elementwise(Attributes):
    """``result_accuracy`` of the functions that are approximated (``exponential``, ``tanh``...)."""

    __slots__ = ()
    result_accuracy = attribute[ResultAccuracy](ResultAccuracy())


class Transpose(_Dimensions):
    """Dimension i of the result is dimension ``dimensions[i]`` of the operand."""

    __slots__ = ()


class Reverse(_Dimensions):
    """The dimensions that are reversed."""

    __slots__ = ()


class _Axis(_Dimensions):
    __slots__ = ()

    @property
    def axis(self) -> int:
        """The one dimension."""
        return self.dimensions[0]


class Concatenate(_Axis):
    """The one dimension along which the operands are concatenated."""

    __slots__ = ()


class DimensionSize(_Axis):
    """The one dimension that ``get-dimension-size`` and ``set-dimension-size`` are about."""

    __slots__ = ()


class Reduce(_Dimensions):
    """The dimensions that are reduced."""

    __slots__ = ()


class Sort(_Axis):
    """The one dimension that is sorted."""

    __slots__ = ()
    is_stable = attribute[bool](False)


class Map(Attributes):
    """The dimensions over which ``map`` applies its computation."""

    __slots__ = ()
    dimensions = attribute[Ints](())


class Scan(_Dimensions):
    """The dimension that is scanned, the number of carried values and the direction."""

    __slots__ = ()
    num_carries = attribute[int]()
    is_reverse = attribute[bool](False)
    is_associative = attribute[bool](False)


class TopK(Attributes):
    """How many elements, and which end of the order."""

    __slots__ = ()
    k = attribute[int]()
    largest = attribute[bool](True)
    is_stable = attribute[bool](False)


class Constant(Attributes):
    """The value."""

    __slots__ = ()
    literal = attribute[Literal]()

    @property
    def known(self) -> Literal | None:
        """The value, where the text does not elide it."""
        literal = self.attrs.get("literal")
        return literal if isinstance(literal, Literal) and not literal.elided else None


class Parameter(Attributes):
    """The number of the parameter."""

    __slots__ = ()
    number = attribute[int]()


class Iota(Attributes):
    """The dimension along which the values count."""

    __slots__ = ()
    iota_dimension = attribute[int]()


class GetTupleElement(Attributes):
    """Which element of the tuple."""

    __slots__ = ()
    index = attribute[int]()


class Slice(Attributes):
    """Start, limit and stride of each dimension."""

    __slots__ = ()
    slice = attribute[Triples]()


class DynamicSlice(Attributes):
    """The number of elements along each dimension of the result."""

    __slots__ = ()
    dynamic_slice_sizes = attribute[Ints]()


class Pad(Attributes):
    """Low, high and interior padding of each dimension; negative padding crops."""

    __slots__ = ()
    padding = attribute[Triples]()


class Compare(Attributes):
    """The comparison, ``EQ NE GE GT LE LT``, and the order: ``FLOAT``, ``TOTALORDER``, ``SIGNED``, ``UNSIGNED``, or empty: by dtype."""

    __slots__ = ()
    direction = attribute[str]()
    type = attribute[str]("")


class Dot(Attributes):
    """Contracting and batch dimensions of both operands."""

    __slots__ = ()
    lhs_contracting_dims = attribute[Ints](())
    rhs_contracting_dims = attribute[Ints](())
    lhs_batch_dims = attribute[Ints](())
    rhs_batch_dims = attribute[Ints](())
    operand_precision = attribute[tuple[str, ...]](())
    algorithm = attribute[str]("")

    @property
    def batch_dims(self) -> tuple[Ints, Ints]:
        """The batch dimensions of the left and of the right operand."""
        return self.lhs_batch_dims, self.rhs_batch_dims

    @property
    def contracting_dims(self) -> tuple[Ints, Ints]:
        """The contracting dimensions of the left and of the right operand."""
        return self.lhs_contracting_dims, self.rhs_contracting_dims


class RaggedDot(Dot):
    """A dot whose left operand is divided into groups along a ragged dimension."""

    __slots__ = ()
    lhs_ragged_dims = attribute[Ints](())
    rhs_group_dims = attribute[Ints](())


class Windowed(Attributes):
    """The window of ``reduce-window``, ``select-and-scatter`` and ``convolution``; None where a convolution has none."""

    __slots__ = ()
    window = attribute[Window | None](None)


class ReduceWindow(Attributes):
    """The window, of a node that is known to have one."""

    __slots__ = ()
    window = attribute[Window]()


class Convolution(Windowed):
    """Dimension labels, window, groups and precision."""

    __slots__ = ()
    dim_labels = attribute[ConvDims]()
    feature_group_count = attribute[int](1)
    batch_group_count = attribute[int](1)
    operand_precision = attribute[tuple[str, ...]](())
    algorithm = attribute[str]("")


class Gather(Attributes):
    """How the dimensions of the operand, the indices and the result correspond; sizes of the slices."""

    __slots__ = ()
    offset_dims = attribute[Ints]()
    collapsed_slice_dims = attribute[Ints]()
    start_index_map = attribute[Ints]()
    index_vector_dim = attribute[int]()
    slice_sizes = attribute[Ints]()
    operand_batching_dims = attribute[Ints](())
    start_indices_batching_dims = attribute[Ints](())
    indices_are_sorted = attribute[bool](False)


class Scatter(Attributes):
    """How the dimensions of the operand, the indices and the updates correspond."""

    __slots__ = ()
    update_window_dims = attribute[Ints]()
    inserted_window_dims = attribute[Ints]()
    scatter_dims_to_operand_dims = attribute[Ints]()
    index_vector_dim = attribute[int]()
    input_batching_dims = attribute[Ints](())
    scatter_indices_batching_dims = attribute[Ints](())
    indices_are_sorted = attribute[bool](False)
    unique_indices = attribute[bool](False)


class Fft(Attributes):
    """``FFT IFFT RFFT IRFFT`` and the lengths of the transformed dimensions."""

    __slots__ = ()
    fft_type = attribute[str]()
    fft_length = attribute[Ints]()


class Cholesky(Attributes):
    """Whether the lower triangle is computed."""

    __slots__ = ()
    lower = attribute[bool](False)


class TriangularSolve(Attributes):
    """Side, triangle and transposition of the matrix."""

    __slots__ = ()
    left_side = attribute[bool](False)
    lower = attribute[bool](False)
    unit_diagonal = attribute[bool](False)
    transpose_a = attribute[str]("NO_TRANSPOSE")


class BatchNorm(Attributes):
    """The addend of the variance, and the dimension of the features."""

    __slots__ = ()
    epsilon = attribute[float]()
    feature_index = attribute[int]()


class Decomposition(Attributes):
    """Which eigenvectors ``eig`` computes, which triangle ``eigh`` reads, whether ``svd`` returns square matrices of vectors."""

    __slots__ = ()
    left = attribute[bool]()
    right = attribute[bool]()
    lower = attribute[bool]()
    full = attribute[bool]()


class ReducePrecision(Attributes):
    """Bits of exponent and mantissa that are kept."""

    __slots__ = ()
    exponent_bits = attribute[int]()
    mantissa_bits = attribute[int]()


class Fusion(Attributes):
    """The kind that XLA printed, and which operands share memory with the result."""

    __slots__ = ()
    kind = attribute[str]("kLoop")
    output_to_operand_aliasing = attribute[tuple[Any, ...]](())


class Call(Attributes):
    """Whether the call is a composite."""

    __slots__ = ()
    is_composite = attribute[bool](False)


class CustomCall(Attributes):
    """The target, and the attributes that XLA prints of it."""

    __slots__ = ()
    custom_call_target = attribute[str]("")
    custom_call_has_side_effect = attribute[bool](False)
    output_to_operand_aliasing = attribute[tuple[Any, ...]](())
    operand_layout_constraints = attribute[tuple[object, ...]](())
    window = attribute[Window | None](None)
    dim_labels = attribute[ConvDims | None](None)
    feature_group_count = attribute[int](1)
    batch_group_count = attribute[int](1)
    literal = attribute[Literal | None](None)


class Collective(Attributes):
    """Which devices take part, and how they are numbered."""

    __slots__ = ()
    dimensions = attribute[Ints](())
    replica_groups = attribute[Any](())
    source_target_pairs = attribute[Pairs](())
    slice_sizes = attribute[object](())
    channel_id = attribute[int | None](None)
    constrain_layout = attribute[bool](False)
    use_global_device_ids = attribute[bool](False)
    mode = attribute[str]("")
    has_dynamic_root = attribute[bool](False)


class Transfer(Attributes):
    """Sends, receives, feeds and asynchronous pairs."""

    __slots__ = ()
    channel_id = attribute[int | None](None)
    is_host_transfer = attribute[bool](False)
    async_execution_thread = attribute[str]("")


class Outfeed(Attributes):
    """The type of the value for the host, where the text states it."""

    __slots__ = ()
    outfeed_shape = attribute[Type | None](None)


class Random(Attributes):
    """Distribution of ``rng``, generator of ``rng-bit-generator``, step of ``rng-get-and-update-state``."""

    __slots__ = ()
    distribution = attribute[str]("")
    algorithm = attribute[str]("")
    delta = attribute[int](0)


class Ordering(Attributes):
    """Instructions that must run before: ``control-predecessors``."""

    __slots__ = ()
    control_predecessors = attribute[tuple[Any, ...]](())

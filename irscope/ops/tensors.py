"""Tensor algebra over nodes, for expansions of larger operators.

    t = Tensors(builder)
    y = t.add(t.matmul(x, t.transpose(w, (1, 0))), bias)        # broadcasts as numpy does

Every method appends primitives and returns the last node. Shapes are static. Operands must have one element type: promotion follows the
rules of the framework whose operator is expanded. A method that has nothing to do returns its operand.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from irscope.graph import NO_ATTRS, Builder, DType, Graph, Node, TensorType, TupleType, Type
from irscope.graph.dtypes import S32
from irscope.lazy import np
from irscope.ops.attrs import ConvDims, Literal, Window
from irscope.ops.building import Combiners
from irscope.ops.checked import Sizes
from irscope.ops.faults import TypeFault
from irscope.ops.registry import get
from irscope.ops.scalar_bodies import arg_extreme_body, overwrite_body, sort_body

Shape = tuple[int, ...]


class Tensors:
    """Builds primitives. A subclass may import operands from other graphs by :meth:`here`."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.combiners = Combiners()

    def here(self, node: Node) -> Node:
        """The node's counterpart in the graph that is being built."""
        return node

    def emit(self, name: str, operands: Sequence[Node], attrs: Mapping[str, object] = NO_ATTRS, bodies: Sequence[Graph] = (),
             type: Type | None = None, dialect: str = "hlo") -> Node:
        """One primitive over operands as they are. Raises TypeFault for a type with a negative size."""
        if isinstance(type, TensorType) and any(isinstance(d, int) and d < 0 for d in type.shape):
            raise TypeFault(f"{name} to {type}, which has a negative size")
        return self.builder.add(get(name, dialect), [self.here(o) for o in operands], attrs, type, bodies)

    # ------------------------------------------------------------------ facts

    def shape(self, x: Node) -> Shape:
        """The sizes of a tensor. To read one that it does not have raises TypeFault."""
        return Sizes(self.type(x).dims())

    def shape_of(self, x: Node, least: int, most: int | None = None) -> Shape:
        """The sizes of a tensor of ``least`` to ``most`` dimensions (None: any more). Raises TypeFault for another one."""
        shape = self.shape(x)
        if len(shape) < least or (most is not None and len(shape) > most):
            wanted = str(least) if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            raise TypeFault(f"it takes a tensor of {wanted} dimensions, not one of the sizes {list(shape)}")
        return shape

    def rank(self, x: Node) -> int:
        return self.type(x).rank

    def dtype(self, x: Node) -> DType:
        return self.type(x).dtype

    def type(self, x: Node) -> TensorType:
        """The type of a tensor; TypeFault for other values."""
        if not isinstance(x.type, TensorType):
            raise TypeFault(f"%{x.name} is {x.type}, not a tensor")
        return x.type

    # ------------------------------------------------------------------ constants

    def array(self, value: object, dtype: DType) -> Node:
        """A constant from anything that numpy takes. Raises TypeFault for what is no number of at most 64 bits."""
        given = np.asarray(value)
        if given.dtype.hasobject:
            raise TypeFault("an operand is not a number of at most 64 bits")
        array = given.astype(dtype.numpy())
        type = TensorType(dtype, array.shape)
        return self.emit("constant", (), {"literal": Literal.of(array, type)}, type=type)

    def full(self, shape: Shape, value: object, dtype: DType) -> Node:
        """A tensor of one value."""
        return self.broadcast_to(self.array(value, dtype), shape)

    def like(self, x: Node, value: object) -> Node:
        """A tensor of one value with the type of ``x``."""
        return self.full(self.shape(x), value, self.dtype(x))

    def iota(self, shape: Shape, dimension: int, dtype: DType) -> Node:
        """0, 1, 2, ... along a dimension."""
        return self.emit("iota", (), {"iota_dimension": dimension}, type=TensorType(dtype, shape))

    # ------------------------------------------------------------------ elementwise

    def broadcast_to(self, x: Node, shape: Shape) -> Node:
        """``x`` broadcast to ``shape`` as in numpy: aligned at the right, sizes of 1 repeated. Raises TypeFault when it does not fit."""
        old = self.shape(x)
        if old == shape:
            return x
        lead = len(shape) - len(old)
        if lead < 0 or any(o not in (1, s) for o, s in zip(old, shape[lead:], strict=True)):
            raise TypeFault(f"shape {list(old)} does not broadcast to {list(shape)}")
        kept = [i for i, (o, s) in enumerate(zip(old, shape[lead:], strict=True)) if o == s]
        if len(kept) != len(old):
            x = self.reshape(x, tuple(old[i] for i in kept))
        return self.emit("broadcast", (x,), {"dimensions": tuple(i + lead for i in kept)}, type=TensorType(self.dtype(x), shape))

    def broadcast_shape(self, *shapes: Shape) -> Shape:
        """The shape to which all broadcast. Raises TypeFault when there is none."""
        rank = max((len(s) for s in shapes), default=0)
        out = []
        for i in range(1, rank + 1):
            sizes = {s[-i] for s in shapes if len(s) >= i} - {1}
            if len(sizes) > 1:
                raise TypeFault(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast")
            out.append(sizes.pop() if sizes else 1)
        return tuple(reversed(out))

    def together(self, *xs: Node) -> list[Node]:
        """All operands broadcast to their common shape."""
        shapes = [self.shape(x) for x in xs]
        if all(shape == shapes[0] for shape in shapes):
            return list(xs)
        shape = self.broadcast_shape(*shapes)
        return [self.broadcast_to(x, shape) for x in xs]

    def unary(self, name: str, x: Node) -> Node:
        """An elementwise operator of one operand, by its HLO name."""
        return self.emit(name, (x,))

    def binary(self, name: str, x: Node, y: Node) -> Node:
        """An elementwise operator of two operands, which are broadcast to one shape."""
        return self.emit(name, self.together(x, y))

    def add(self, x: Node, y: Node) -> Node:
        return self.binary("add", x, y)

    def sub(self, x: Node, y: Node) -> Node:
        return self.binary("subtract", x, y)

    def mul(self, x: Node, y: Node) -> Node:
        return self.binary("multiply", x, y)

    def div(self, x: Node, y: Node) -> Node:
        return self.binary("divide", x, y)

    def maximum(self, x: Node, y: Node) -> Node:
        return self.binary("maximum", x, y)

    def minimum(self, x: Node, y: Node) -> Node:
        return self.binary("minimum", x, y)

    def scale(self, x: Node, factor: float) -> Node:
        """``x`` times a number."""
        return x if factor == 1 else self.mul(x, self.array(factor, self.dtype(x)))

    def plus(self, x: Node, value: float) -> Node:
        """``x`` plus a number."""
        return x if value == 0 else self.add(x, self.array(value, self.dtype(x)))

    def small_power(self, x: Node, exponent: float) -> Node | None:
        """``x`` to a power as products, up to 3; None for other powers."""
        if exponent not in (1, 2, 3):
            return None
        return x if exponent == 1 else self.mul(x, x) if exponent == 2 else self.mul(self.mul(x, x), x)

    def compare(self, direction: str, x: Node, y: Node) -> Node:
        """``direction`` is EQ NE LT LE GT GE."""
        x, y = self.together(x, y)
        return self.emit("compare", (x, y), {"direction": direction})

    def select(self, condition: Node, x: Node, y: Node) -> Node:
        """``x`` where the condition holds, else ``y``; all three are broadcast to one shape."""
        return self.emit("select", self.together(condition, x, y))

    def convert(self, x: Node, dtype: DType) -> Node:
        """``x`` in another element type."""
        if self.dtype(x) is dtype:
            return x
        return self.emit("convert", (x,), type=TensorType(dtype, self.shape(x)))

    def bitcast_convert(self, x: Node, dtype: DType) -> Node:
        """The bits of ``x`` as another type of the same width."""
        return self.emit("bitcast-convert", (x,), type=TensorType(dtype, self.shape(x)))

    # ------------------------------------------------------------------ movement

    def reshape(self, x: Node, shape: Shape) -> Node:
        """The same elements under other sizes. Raises TypeFault when their number differs."""
        if prod(shape) != prod(self.shape(x)):
            raise TypeFault(f"{list(self.shape(x))} has {prod(self.shape(x))} elements, {list(shape)} has {prod(shape)}")
        return x if self.shape(x) == shape else self.emit("reshape", (x,), type=TensorType(self.dtype(x), shape))

    def transpose(self, x: Node, order: Sequence[int]) -> Node:
        """Dimension i of the result is dimension order[i] of ``x``."""
        order = tuple(order)
        return x if order == tuple(range(len(order))) else self.emit("transpose", (x,), {"dimensions": order})

    def slice(self, x: Node, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None) -> Node:
        """From start to below limit, in steps, in every dimension."""
        strides = strides or [1] * len(starts)
        if all(s == 0 and lim == n and step == 1 for s, lim, step, n in zip(starts, limits, strides, self.shape(x), strict=True)):
            return x
        return self.emit("slice", (x,), {"slice": tuple(zip(starts, limits, strides, strict=True))})

    def slice_dim(self, x: Node, dimension: int, start: int, limit: int, stride: int = 1) -> Node:
        """A slice along one dimension. Raises TypeFault where the tensor does not have it."""
        shape = self.shape(x)
        if not -len(shape) <= dimension < len(shape):
            raise TypeFault(f"a tensor of the sizes {list(shape)} has no dimension {dimension}")
        starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
        starts[dimension], limits[dimension], strides[dimension] = start, limit, stride
        return self.slice(x, starts, limits, strides)

    def pad(self, x: Node, value: Node, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None) -> Node:
        """``x`` with ``value`` (a scalar) around it and between its elements; negative sizes crop."""
        interior = interior or [0] * len(low)
        if not any((*low, *high, *interior)):
            return x
        return self.emit("pad", (x, value), {"padding": tuple(zip(low, high, interior, strict=True))})

    def concat(self, xs: Sequence[Node], dimension: int) -> Node:
        """Concatenate tensors along a dimension."""
        return xs[0] if len(xs) == 1 else self.emit("concatenate", xs, {"dimensions": (dimension,)})

    def reverse(self, x: Node, dimensions: Sequence[int]) -> Node:
        return self.emit("reverse", (x,), {"dimensions": tuple(dimensions)}) if dimensions else x

    # ------------------------------------------------------------------ reductions

    def reduce(self, name: str, x: Node, dimensions: Sequence[int], init: object, keepdims: bool = False) -> Node:
        """``name`` is the HLO operator that combines two elements."""
        dimensions = tuple(sorted(dimensions))
        if not dimensions:
            return x
        dtype = self.dtype(x)
        y = self.emit("reduce", (x, self.array(init, dtype)), {"dimensions": dimensions}, (self.combiners[name, dtype],))
        return self.reshape(y, tuple(1 if i in dimensions else n for i, n in enumerate(self.shape(x)))) if keepdims else y

    def sum(self, x: Node, dimensions: Sequence[int], keepdims: bool = False) -> Node:
        return self.reduce("add", x, dimensions, 0, keepdims)

    def product(self, x: Node, dimensions: Sequence[int], keepdims: bool = False) -> Node:
        return self.reduce("multiply", x, dimensions, 1, keepdims)

    def mean(self, x: Node, dimensions: Sequence[int], keepdims: bool = False) -> Node:
        """The sum divided by the number of elements."""
        n = prod(self.shape(x)[d] for d in dimensions)
        total = self.sum(x, dimensions, keepdims)
        return self.div(total, self.array(n, self.dtype(x)))

    def max(self, x: Node, dimensions: Sequence[int], keepdims: bool = False) -> Node:
        return self.reduce("maximum", x, dimensions, self.dtype(x).lowest, keepdims)

    def min(self, x: Node, dimensions: Sequence[int], keepdims: bool = False) -> Node:
        return self.reduce("minimum", x, dimensions, self.dtype(x).highest, keepdims)

    def any(self, x: Node, dimensions: Sequence[int], keepdims: bool = False) -> Node:
        return self.reduce("or", x, dimensions, False, keepdims)

    def all(self, x: Node, dimensions: Sequence[int], keepdims: bool = False) -> Node:
        return self.reduce("and", x, dimensions, True, keepdims)

    def arg_extreme(self, x: Node, dimension: int, largest: bool, index: DType = S32) -> tuple[Node, Node]:
        """The extreme value along a dimension and its first index. NaN counts as the extreme, as in torch and numpy."""
        dtype = self.dtype(x)
        body = arg_extreme_body(dtype, index, largest)
        at = self.iota(self.shape(x), dimension, index)
        start = self.array(dtype.lowest if largest else dtype.highest, dtype)
        both = self.emit("reduce", (x, at, start, self.array(0, index)), {"dimensions": (dimension,)}, (body,))
        return self.part(both, 0), self.part(both, 1)

    def part(self, x: Node, index: int) -> Node:
        """One value of a tuple."""
        assert isinstance(x.type, TupleType)
        return self.emit("get-tuple-element", (x,), {"index": index}, type=x.type.elements[index])

    def window(self, name: str, x: Node, init: object, window: Window) -> Node:
        """``reduce-window`` with one of the combining operators."""
        dtype = self.dtype(x)
        return self.emit("reduce-window", (x, self.array(init, dtype)), {"window": window}, (self.combiners[name, dtype],))

    def cumulative(self, name: str, x: Node, dimension: int, init: object, reverse: bool = False) -> Node:
        """A running reduction: ``name`` combines all elements up to each."""
        shape = self.shape(x)
        n = shape[dimension]
        size = tuple(n if i == dimension else 1 for i in range(len(shape)))
        pad = tuple(((0, n - 1) if reverse else (n - 1, 0)) if i == dimension else (0, 0) for i in range(len(shape)))
        return self.window(name, x, init, Window.make(size, pad=pad)) if n > 1 else x

    # ------------------------------------------------------------------ contractions

    def dot(self, x: Node, y: Node, contracting: tuple[Sequence[int], Sequence[int]], batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
            dtype: DType | None = None) -> Node:
        """``dot`` with HLO's order of result dimensions: batch, left, right. ``dtype`` is that of the result."""
        attrs = {"lhs_contracting_dims": tuple(contracting[0]), "rhs_contracting_dims": tuple(contracting[1]),
                 "lhs_batch_dims": tuple(batch[0]), "rhs_batch_dims": tuple(batch[1])}
        node = self.emit("dot", (x, y), attrs)
        if dtype is not None and self.dtype(node) is not dtype:
            node.type = TensorType(dtype, self.shape(node))
        return node

    def matmul(self, x: Node, y: Node, dtype: DType | None = None) -> Node:
        """numpy's ``matmul``: vectors, matrices, and batches that broadcast."""
        xs, ys = self.shape(x), self.shape(y)
        if len(xs) == 1 or len(ys) == 1:
            if len(xs) == 1 and len(ys) > 2:
                return self._vector_by_batch(x, y, dtype)
            return self.dot(x, y, ([len(xs) - 1], [max(0, len(ys) - 2)]), dtype=dtype)
        if len(ys) == 2:
            return self.dot(x, y, ([len(xs) - 1], [0]), dtype=dtype)
        lead = self.broadcast_shape(xs[:-2], ys[:-2])
        x, y = self.broadcast_to(x, lead + xs[-2:]), self.broadcast_to(y, lead + ys[-2:])
        n = len(lead)
        return self.dot(x, y, ([n + 1], [n]), (range(n), range(n)), dtype)

    def _vector_by_batch(self, x: Node, y: Node, dtype: DType | None) -> Node:
        made = self.matmul(self.reshape(x, (1, *self.shape(x))), y, dtype)
        shape = self.shape(made)
        return self.reshape(made, (*shape[:-2], shape[-1]))

    def conv(self, x: Node, w: Node, dims: ConvDims | str, window: Window, groups: int = 1, batch_groups: int = 1) -> Node:
        """``convolution``; ``dims`` as ``b01f_01io->b01f``."""
        labels = ConvDims.parse(dims) if isinstance(dims, str) else dims
        counts = {"feature_group_count": groups, "batch_group_count": batch_groups}
        return self.emit("convolution", (x, w), {"window": window, "dim_labels": labels, **{k: n for k, n in counts.items() if n != 1}})

    # ------------------------------------------------------------------ indexing and order

    def take(self, x: Node, indices: Node, dimension: int) -> Node:
        """``x`` at integer indices along a dimension, which the dimensions of ``indices`` replace. Indices are clamped, not wrapped."""
        shape, n = self.shape(x), self.rank(indices)
        result = (*shape[:dimension], *self.shape(indices), *shape[dimension + 1:])
        if 0 in result:  # also when the dimension is empty, where a gather is invalid
            return self.full(result, 0, self.dtype(x))
        sizes = tuple(1 if i == dimension else s for i, s in enumerate(shape))
        offsets = tuple(range(dimension)) + tuple(range(dimension + n, len(shape) - 1 + n))
        attrs = {"offset_dims": offsets, "collapsed_slice_dims": (dimension,), "start_index_map": (dimension,), "index_vector_dim": n,
                 "slice_sizes": sizes}
        return self.emit("gather", (x, indices), attrs)

    def gather_elements(self, x: Node, indices: Node, dimension: int) -> Node:
        """``result[i, j] = x[indices[i, j], j]`` for dimension 0, and so on; ``indices`` may be smaller in the other dimensions."""
        ishape = self.shape(indices)
        if 0 in ishape:
            return self.full(ishape, 0, self.dtype(x))
        parts = [indices if d == dimension else self.iota(ishape, d, self.dtype(indices)) for d in range(len(ishape))]
        starts = self.concat([self.reshape(part, (*ishape, 1)) for part in parts], len(ishape))
        rank = self.rank(x)
        attrs = {"offset_dims": (), "collapsed_slice_dims": tuple(range(rank)), "start_index_map": tuple(range(rank)),
                 "index_vector_dim": len(ishape), "slice_sizes": (1,) * rank}
        return self.emit("gather", (x, starts), attrs)

    def scatter(self, x: Node, starts: Node, updates: Node, combine: str | None, *, window_dims: Sequence[int] = (),
                inserted: Sequence[int] = ()) -> Node:
        """``scatter``; the last dimension of ``starts`` indexes the dimensions ``inserted``; ``combine`` None overwrites."""
        dtype = self.dtype(x)
        body = overwrite_body(dtype) if combine is None else self.combiners[combine, dtype]
        attrs = {"update_window_dims": tuple(window_dims), "inserted_window_dims": tuple(inserted),
                 "scatter_dims_to_operand_dims": tuple(inserted), "index_vector_dim": self.rank(starts) - 1}
        return self.emit("scatter", (x, starts, updates), attrs, (body,))

    def dynamic_slice(self, x: Node, starts: Sequence[Node], sizes: Shape) -> Node:
        return self.emit("dynamic-slice", (x, *starts), {"dynamic_slice_sizes": sizes})

    def update_slice(self, x: Node, update: Node, starts: Sequence[Node]) -> Node:
        """``x`` with ``update`` written at ``starts`` (integer scalars, one a dimension)."""
        return self.emit("dynamic-update-slice", (x, update, *starts))

    def sort(self, xs: Sequence[Node], dimension: int, descending: bool = False) -> list[Node]:
        """All tensors in the order of the first; stable; NaN last when ascending and first when descending, as torch and numpy sort."""
        body = sort_body([self.dtype(x) for x in xs], descending)
        attrs = {"dimensions": (dimension,), "is_stable": True}
        if len(xs) == 1:
            return [self.emit("sort", xs, attrs, (body,))]
        both = self.emit("sort", xs, attrs, (body,))
        return [self.part(both, i) for i in range(len(xs))]

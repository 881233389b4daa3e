"""Winograd convolutions: the transform of the kernel, and the convolution with a transformed kernel.

    Y = A^T [ (G g G^T) * (B^T d B) ] A          for every tile of the result, over all channels

(A. Lavin, S. Gray, "Fast algorithms for convolutional neural networks", 2015.)
"""

from __future__ import annotations

from math import prod
from typing import Any

from irscope.formats.relay.algebra import Relay, each, paddings, plain_layout, shape_text, table_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.convolution import SPATIAL, attributes
from irscope.formats.sampling import product_along
from irscope.graph import Kind, Node
from irscope.graph.dtypes import S64
from irscope.lazy import np
from irscope.ops.faults import TypeFault

C = Kind.CONTRACTION
POINTS = (
    (0, -1, 1),
    (0, -1, 1, 1 / 2),
    (0, -1, 1, 1 / 2, -2),
    (0, -1, 1, 1 / 2, -2, -1 / 2),
    (0, -1, 1, 1 / 2, -1 / 2, 2, -2),
    (0, -1, 1, 1 / 2, -1 / 2, 2, -2, -1 / 4),
    (0, -1, 1, 1 / 2, -1 / 2, 2, -2, -1 / 4, 4),
    (0, -1, 1, 1 / 2, -1 / 2, 2, -2, -1 / 4, 3 / 4, -4 / 3),
    (0, -1, 1, 1 / 2, -1 / 2, 2, -2, -1 / 4, 4, 3 / 4, -4 / 3),
    (0, -1, 1, 1 / 2, -1 / 2, 2, -2, -1 / 4, 4, 3 / 4, -4 / 3, 1 / 4),
    (0, -1, 1, 1 / 2, -1 / 2, 2, -2, -1 / 4, 4, 1 / 4, -3 / 4, 4 / 3, -4),
)
"""Where the polynomials are evaluated, by their number from 3 on, as TVM chooses them: kernels in a dump were transformed with these.
(B. Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution for deep neural networks", 2018.)"""


def matrices(tile: int, kernel: int) -> tuple[Any, Any, Any]:
    """A (alpha, tile), B (alpha, alpha) and G (alpha, kernel) of Cook and Toom for ``tile`` results at once; alpha = tile + kernel - 1."""
    which = tile + kernel - 2 - len(POINTS[0])
    if not 2 <= tile <= 8 or not 3 <= kernel <= 7 or which >= len(POINTS):
        raise TypeFault(f"Winograd transforms are known for tiles of 2 to 8 and kernels of 3 to 7, not {tile} and {kernel}")
    points = POINTS[which]
    n = len(points)
    scale = [prod(points[i] - p for k, p in enumerate(points) if k != i) for i in range(n)]
    # The sign of the first factor may be on either side; TVM puts it with the data.
    factor = np.array([abs(scale[0]), *scale[1:], 1.0])

    def powers(columns: int) -> object:
        last = np.zeros((1, columns))
        last[0, -1] = 1
        return np.concatenate([np.power.outer(np.array(points, float), np.arange(columns)), last])
    rows = []
    for i in range(n):
        others = np.poly([p for k, p in enumerate(points) if k != i])[::-1] / scale[i]
        rows.append(np.concatenate([others, [0.0]]))
    inner = np.array(rows).T  # the Lagrange polynomials, one a column, lowest power first
    inner[n] = 0
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n] = inner[:n]
    whole[:n, n] = -inner[:n] @ np.array([float(p) ** n for p in points])
    whole[n, n] = 1
    return powers(tile), whole * factor, powers(kernel) / factor[:, None]


def _along(t: Relay, x: Node, matrix: object, axis: int) -> Node:
    """``x`` with one dimension multiplied by a matrix (old size, new size); the dimension keeps its position."""
    return product_along(t, x, axis, t.array(matrix, t.dtype(x)))


@operator("nn.contrib_conv2d_winograd_weight_transform(weight: 4d; tile_size!)", kind=C)
def conv2d_weight(t: Relay, a: Attributes, w: Node) -> Node:
    """A kernel (O, I, H, W) in Winograd's domain: (alpha, alpha, O, I)."""
    return _transformed(t, w, int(a.tile_size), (2, 3))


@operator("nn.contrib_conv3d_winograd_weight_transform(weight: 5d; tile_size!)", kind=C)
def conv3d_weight(t: Relay, a: Attributes, w: Node) -> Node:
    """A kernel (O, I, D, H, W) in Winograd's domain: the depth too where it is as large as the others, else after them."""
    depth, height = t.shape(w)[2:4]
    if depth == height:
        return _transformed(t, w, int(a.tile_size), (2, 3, 4))
    made = _transformed(t, w, int(a.tile_size), (3, 4))  # alpha, alpha, O, I, D
    return t.transpose(made, (0, 1, 4, 2, 3))


def _transformed(t: Relay, w: Node, tile: int, axes: tuple[int, ...]) -> Node:
    """The kernel with these dimensions transformed, and moved to the front."""
    for axis in axes:
        _, _, g = matrices(tile, t.shape(w)[axis])
        w = _along(t, w, g.T, axis)
    return t.transpose(w, [*axes, *(d for d in range(t.rank(w)) if d not in axes)])


def _over_tiles(t: Relay, a: Attributes, x: Node, w: Node, n: int, depth: int) -> Node:
    """The convolution over ``NC...`` data; ``w`` is (alpha, ..., O, I), or (alpha, alpha, depth, O, I) with the depth not transformed."""
    if any(v != 1 for v in (*each(a.strides, n), *each(a.dilation, n))) or int(a.groups) != 1:
        raise TypeFault("Winograd's convolution has strides and dilation of 1 and one group")
    tile, alpha = int(a.tile_size), t.shape(w)[0]
    kernel = alpha - tile + 1
    first = 3 if depth else 2
    axes = list(range(first, n + 2))
    pads = paddings(a.padding, n)
    size = [s + low + high for s, (low, high) in zip(t.shape(x)[2:], pads, strict=True)]
    out = [s - k + 1 for s, k in zip(size, [depth] * bool(depth) + [kernel] * len(axes), strict=True)]
    if min(out) <= 0:
        raise TypeFault(f"the kernel is larger than the padded data, which is {shape_text(size)}")
    tiles = [-(-out[d - 2] // tile) for d in axes]
    more = [0] * (first - 2) + [count * tile + kernel - 1 - size[d - 2] for d, count in zip(axes, tiles, strict=True)]
    high = [after + extra for (_, after), extra in zip(pads, more, strict=True)]
    x = t.pad(x, t.array(0, t.dtype(x)), [0, 0, *(before for before, _ in pads)], [0, 0, *high])
    a_matrix, b_matrix, _ = matrices(tile, kernel)
    # (N, C, [D,] tiles and elements of each axis in turn)
    for number, count in enumerate(tiles):
        axis = first + 2 * number
        table_of(count * alpha)
        places = np.arange(count)[:, None] * tile + np.arange(alpha)
        x = t.take(x, t.array(places, S64), axis)
        x = _along(t, x, b_matrix, axis + 1)
    if depth:
        table_of(out[0] * depth)
        places = np.arange(out[0])[:, None] + np.arange(depth)
        x = t.take(x, t.array(places, S64), 2)  # N, C, out, D, ...
    spaces = len(axes)
    behind = 4 if depth else 2
    elements = [behind + 2 * i + 1 for i in range(spaces)]
    counts = [behind + 2 * i for i in range(spaces)]
    lead = [2] if depth else []
    inner = [3, 1] if depth else [1]
    # Everything becomes one product for each element of the tile: (elements, places, [D,] I) with (elements, O, [D,] I).
    v = t.transpose(x, [*elements, 0, *lead, *counts, *inner])
    shape = t.shape(v)
    n_places = prod(shape[spaces : len(shape) - len(inner)])
    v = t.reshape(v, (prod(shape[:spaces]), n_places, prod(shape[len(shape) - len(inner) :])))
    if depth:
        w = t.transpose(w, (0, 1, 3, 2, 4))
    o = t.shape(w)[spaces]
    u = t.reshape(w, (prod(t.shape(w)[:spaces]), o, t.shape(v)[2]))
    m = t.dot(v, u, ([2], [2]), ([0], [0]))
    m = t.reshape(m, (*[alpha] * spaces, *shape[spaces : len(shape) - len(inner)], o))
    for axis in range(spaces):
        m = _along(t, m, a_matrix, axis)
    # (tile, ..., N, [out,] counts, O) -> (N, O, [out,] count, tile, ...)
    at = spaces + 1 + len(lead)
    order = [spaces, t.rank(m) - 1, *([spaces + 1] if depth else [])]
    for i in range(spaces):
        order += [at + i, i]
    m = t.transpose(m, order)
    whole = [t.shape(m)[0], o, *([out[0]] if depth else []), *(count * tile for count in tiles)]
    m = t.reshape(m, tuple(whole))
    return t.slice(m, [0] * t.rank(m), [whole[0], o, *out])


def _convolution(n: int) -> None:
    letters = "NC" + SPATIAL[n]

    def build(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
        data = str(a.data_layout)
        x = t.to_layout(x, data, letters)
        w, depth = _kernel(t, a, x, w, n, plain_layout(data) == letters)
        dtype = t.dtype_word(a.out_dtype, t.dtype(x))
        made = _over_tiles(t, a, t.convert(x, dtype), t.convert(w, dtype), n, depth)
        return t.to_layout(made, letters, str(a.out_layout or data))

    build.__doc__ = "A convolution whose kernel is already in Winograd's domain."
    operator(f"nn.contrib_conv{n}d_winograd_without_weight_transform(data: {n + 2}d+, weight: {n + 2}d+; tile_size!, "
             f"{attributes(n, letters, 'OI' + SPATIAL[n])})", kind=C)(build)


def _kernel(t: Relay, a: Attributes, x: Node, w: Node, n: int, channels_first: bool) -> tuple[Node, int]:
    """The kernel as (alpha, ..., [D,] O, I), and its depth where that is not transformed.

    TVM's targets use different layouts, which the sizes distinguish. With as many inputs as outputs they do not: then the inputs come
    before the outputs for channels first in two dimensions, else after them, as in TVM's code.
    """
    shape, inner = t.shape(w), t.shape(x)[1]
    alpha = shape[0]
    if n == 2 and len(shape) == 5:  # (alpha, alpha, O / part, I, part), for ARM
        w = t.reshape(t.transpose(w, (0, 1, 2, 4, 3)), (alpha, alpha, shape[2] * shape[4], shape[3]))
        shape = t.shape(w)
    elif len(shape) != n + 2:
        raise TypeFault(f"the weight is {shape_text(shape)}: a layout of another target")
    outer = int(a.channels) if isinstance(a.channels, int) else None
    swapped = n == 2 and channels_first if shape[-1] == shape[-2] else shape[-1] != inner
    if swapped:
        w = t.transpose(w, [*range(n), n + 1, n])
        shape = t.shape(w)
    if shape[-1] != inner or outer not in (None, shape[-2]):
        raise TypeFault(f"data has {inner} channels and the result {outer or '?'}, the weight is {shape_text(shape)}")
    return w, shape[2] if n == 3 and shape[2] != alpha else 0


_convolution(2)
_convolution(3)

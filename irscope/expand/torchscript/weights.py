"""The parameters that a program reads from its objects: passed by the user, typed by the text, or inferred from their users.

An inlined graph has ``%weight : Tensor``. Without a file, the operator that takes it determines its shape from its other operand and
its result: a linear layer from 128 to 64 features has a weight of 64 x 128.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from irscope.expand.torchscript.inputs import given_layout
from irscope.expand.torchscript.program import TorchProgram
from irscope.formats.torchscript.abstract import Tensor
from irscope.graph import Node, TensorType
from irscope.graph.dtypes import F32
from irscope.ops.faults import TypeFault
from irscope.source import UserError, did_you_mean

Shape = tuple[int, ...]
ROWS = 1000
"""Rows of an embedding whose indices are not given."""
MOST_REACH = 1 << 20
"""No kernel of a model is wider."""


class UnsolvedWeight(Tensor):
    """A weight that is used, and whose shape is not known yet."""

    __slots__ = ("path", "place")

    def __init__(self, path: str, place: Node) -> None:
        super().__init__()
        self.path = path
        self.place = place

    @property
    def solved(self) -> bool:
        return self.storage.built

    def get(self) -> Node:
        if not self.solved:
            raise TypeFault(f"the text does not say the shape of weight {self.path!r}")
        return super().get()

    def settle(self, node: Node) -> None:
        """Create its parameter."""
        self.storage.set(node)
        self.region.layout = given_layout(self.place.type, node)


def weight(program: TorchProgram, path: str, node: Node) -> Tensor:
    """The parameter of the main graph for a state-dict path; the same one for every use.

    Raises UserError when the given file of weights lacks it.
    """
    if path not in program.weights:
        program.weights[path] = made = _new_weight(program, path, node)
        program.has_unsolved |= isinstance(made, UnsolvedWeight)
    return program.weights[path]


def flat_weights(program: TorchProgram, owner: str, node: Node) -> list[Tensor]:
    """The list of parameters of a recurrent module: by layer and direction, as the state dict names them."""
    found = [f"{owner}.{name}" if owner else name for name in recurrent_names(owner, program.given.weights)]
    if not found:
        raise UserError(f"the tensors of the list %{node.name} are not in the text{program.where(node)}",
                        "torch.save(model.state_dict(), 'w.pt') and --weights w.pt gives them")
    return [weight(program, path, node) for path in found]


def _new_weight(program: TorchProgram, path: str, node: Node) -> Tensor:
    declared = program.given.weights.get(path)
    if declared is None and isinstance(node.type, TensorType) and node.type.is_static:
        declared = TensorType(node.type.dtype, node.type.shape)
    if declared is not None:
        made = program.parameter(declared, node, path)
        return Tensor(made, layout=given_layout(node.type, made))
    if program.given.weights:
        raise UserError(f"there is no weight {path!r} for %{node.name}{program.where(node)}, and the text does not say its shape",
                        nearest(path, list(program.given.weights)))
    return UnsolvedWeight(path, node)


RECURRENT = re.compile(r"(?:weight_(?:ih|hh|hr)|bias_(?:ih|hh))_l(\d{1,9})(_reverse)?$")
PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


def recurrent_names(owner: str, known: Collection[str]) -> list[str]:
    """Names of a recurrent module's parameters in the order in which it keeps them."""
    prefix = owner + "." if owner else ""
    names = [n.removeprefix(prefix) for n in known if n.startswith(prefix) and RECURRENT.fullmatch(n.removeprefix(prefix))]

    def place(name: str) -> tuple[int, bool, int]:
        found = RECURRENT.fullmatch(name)
        assert found is not None
        return int(found[1]), found[2] is not None, PARTS.index(name.partition("_l")[0])
    return sorted(names, key=place)


def nearest(path: str, known: Sequence[str]) -> str:
    """The help that names the nearest entry of the file: the same path under another root, or a similar one."""
    for name in known:
        if name.endswith("." + path) or path.endswith("." + name):
            return f"the file has {name!r}: rename its entries, or save the state dict of the module that was traced"
    shown = ", ".join(known[:5]) + (f" and {len(known) - 5} more" if len(known) > 5 else "")
    return did_you_mean(path, known) or f"the file has {shown}; torch.save(model.state_dict(), 'w.pt') of the traced model gives all"


def settle(program: TorchProgram, node: Node, name: str, values: Sequence[object]) -> None:
    """Infer the shapes of the weights among the operands of an operator. Raises UserError for one that they do not determine."""
    wanted = [(i, v) for i, v in enumerate(values) if isinstance(v, UnsolvedWeight) and not v.solved]
    if name in GATES and len(values) > 7 and isinstance(values[2], list):
        _recurrent(program, name, values)
    for place, value in wanted:
        found = solved(program, node, name, values, place)
        if found is None:
            raise UserError(
                f"the text does not say the shape of weight {value.path!r}, which %{node.name} = {name} takes{program.where(node)}",
                "torch.save(model.state_dict(), 'w.pt') and --weights w.pt gives it; or print torch.jit._get_trace_graph(model, x)[0] "
                "or torch.jit.freeze(traced).graph, which say the shapes")
        value.settle(program.parameter(TensorType(_dtype(node, name), found), value.place, value.path))


def _dtype(node: Node, name: str) -> Any:
    """The result's where the operator keeps the element type, else float32."""
    declared = node.type
    if not isinstance(declared, TensorType):
        return F32
    return declared.dtype if declared.dtype.is_float or name in SAME or name in RESHAPING else F32


def _shape(value: object) -> Shape | None:
    """The shape of a known operand."""
    if not isinstance(value, Tensor) or (isinstance(value, UnsolvedWeight) and not value.solved):
        return None
    type = value.get().type
    return type.dims() if isinstance(type, TensorType) else None


def _declared(node: Node) -> Shape | None:
    """The shape that the text states for the result."""
    return node.type.dims() if isinstance(node.type, TensorType) and node.type.is_static else None


@dataclass(frozen=True, slots=True)
class ShapeRequest:
    """Operand ``place`` of an operator, whose shape is wanted; ``x`` is the shape of the first operand."""

    program: TorchProgram
    values: Sequence[Any]
    place: int
    x: Shape | None
    result: Shape | None


def solved(program: TorchProgram, node: Node, name: str, values: Sequence[object], place: int) -> Shape | None:
    """The shape of operand ``place``; None where nothing determines it."""
    plain = name.rstrip("_") if name.startswith("aten::") and not name.endswith("__") else name
    rule = RULES.get(plain)
    query = ShapeRequest(program, values, place, _shape(values[0] if values else None), _declared(node))
    if rule is not None:
        return rule(query)
    if plain in SAME and place == 0:
        return query.result
    return _beside(query) if plain in ELEMENTWISE else None


def _linear(query: ShapeRequest) -> Shape | None:
    x, result, bias, matrix = query.x, query.result, _shape(query.values[2]), _shape(query.values[1])
    out = result[-1] if result else bias[0] if bias else matrix[0] if matrix else None
    if out is None or (query.place == 1 and not x):
        return None
    return (out, x[-1]) if query.place == 1 and x else (out,)


def _product(query: ShapeRequest) -> Shape | None:
    """``matmul(x, w)`` and ``addmm(b, x, w)``: the matrix on the right."""
    place, result = query.place, query.result
    left = _shape(query.values[place - 1]) if place else None
    if not left or not result:
        return (result[-1],) if result and place == 0 and len(query.values) > 2 else None
    return (left[-1], result[-1])


def _embedding(query: ShapeRequest) -> Shape | None:
    """As many rows as the indices need."""
    if query.place or not query.result or not isinstance(query.values[1], Tensor):
        return None
    t = query.program.t
    try:
        indices = query.values[1].get()
        rows = max(0, t.size_from_data(t.plus(t.max(indices, list(range(t.rank(indices)))), 1)))
    except TypeFault:
        rows = ROWS
    return (rows, query.result[-1])


def _indexed(query: ShapeRequest) -> Shape | None:
    """A table read by one tensor of indices."""
    values, result = query.values, query.result
    if query.place or not result or not isinstance(values[1], list) or len(values[1]) != 1 or not isinstance(values[1][0], Tensor):
        return None
    rows = _embedding(replace(query, values=[None, values[1][0]]))
    return (rows[0], *result[query.program.t.rank(values[1][0].get()):]) if rows else None


def _convolution(query: ShapeRequest) -> Shape | None:
    """Channels from the operands, the kernel from the sizes of image and result; where several fit, the one that keeps the size."""
    values, place, x, result = query.values, query.place, query.x, query.result
    transposed = bool(values[6]) if len(values) > 8 else False
    groups = values[8] if len(values) > 8 else values[6] if len(values) > 6 else 1
    stride, padding, dilation = (v if isinstance(v, list) else [v] for v in values[3:6])
    n = len(stride)
    bias = _shape(values[2])
    if x is None or (result is None and bias is None) or min(len(x), len(result or x)) <= n:
        return None
    out = result[-n - 1] if result else bias[0] if bias else 0
    if place == 2:
        return (out,)
    if result is None or padding == ["same"]:
        return None
    padding = [0] * n if padding == ["valid"] else padding
    extra = values[7] if transposed else [0] * n
    if not n == len(padding) == len(dilation) == len(extra) or not all(isinstance(v, int) for v in (*stride, *padding, *dilation, *extra)):
        return None  # operands that aten refuses, or that depend on data
    if min((*stride, *dilation, groups)) < 1:
        return None
    kernel = []
    for i in range(n):
        size, made, s, p, d = x[i - n], result[i - n], stride[i], padding[i], dilation[i]
        if transposed:
            kernel.append((made - (size - 1) * s + 2 * p - extra[i] - 1) // d + 1)
            continue
        most = size + 2 * p - 1 - s * (made - 1)  # a stride reaches over as many elements: fewer than the image has
        fits = [r // d + 1 for r in range(most, max(most - s, -1), -1) if r % d == 0] if most < MOST_REACH else []
        if not fits:
            return None
        kernel.append(_likely(fits, size, s, p, d, values[2] is not None))
    channels = x[-n - 1]
    return (channels, out // groups, *kernel) if transposed else (out, channels // groups, *kernel)


def _likely(fits: Sequence[int], size: int, stride: int, padding: int, dilation: int, biased: bool) -> int:
    """The kernel size that models usually have: adjacent patches, a kernel that keeps the size, or an odd one.

    A stride of two without a bias is the shortcut of a residual block, with kernel 1; with a bias it merges patches.
    """
    if not padding and stride == 2 and not biased and 1 in fits:
        return 1
    if stride in fits and padding == 0 and stride > 1 and size % stride == 0:
        return stride
    same = [k for k in fits if padding and 2 * padding in (dilation * (k - 1), dilation * (k - 1) + stride - 1)]
    return (same or [k for k in fits if k % 2] or list(fits))[0]


def _beside(query: ShapeRequest) -> Shape | None:
    """A vector along the last dimension, which fits any operand; without another operand, the shape of the result."""
    result = query.result
    other = next((s for i, v in enumerate(query.values) if i != query.place and (s := _shape(v)) is not None), None)
    if other is None or not other:
        return result
    return other[-1:] if result is None or result == other else result


def _expanded(query: ShapeRequest) -> Shape | None:
    """Sizes of -1 are those of the weight; an explicit size broadcasts one element."""
    sizes, result = query.values[1], query.result
    if query.place or not result or not isinstance(sizes, list) or len(sizes) != len(result):
        return None
    return tuple(n if s == -1 else 1 for s, n in zip(sizes, result, strict=True))


def _grown(query: ShapeRequest) -> Shape | None:
    """Before ``unsqueeze``."""
    if not query.result:
        return None
    d = query.values[1] % len(query.result)
    return (*query.result[:d], *query.result[d + 1:])


def _swapped(query: ShapeRequest) -> Shape | None:
    if not query.result:
        return None
    shape, rank = list(query.result), len(query.result)
    a, b = query.values[1:3]
    if not all(isinstance(d, int) and -rank <= d < rank for d in (a, b)):
        return None
    shape[a], shape[b] = shape[b], shape[a]
    return tuple(shape)


def _sizes(value: object) -> Shape | None:
    """A list of sizes that are known."""
    return tuple(value) if isinstance(value, list) and all(isinstance(n, int) and n >= 0 for n in value) else None


GATES = {"aten::lstm": 4, "aten::gru": 3, "aten::rnn_tanh": 1, "aten::rnn_relu": 1}


def _recurrent(program: TorchProgram, name: str, values: Sequence[Any]) -> None:
    """The parameters of a recurrent network: input, state, and biases of each layer and direction."""
    x, state = _shape(values[0]), _shape(values[1][0] if isinstance(values[1], list) else values[1])
    if not x or not state:
        return
    biases, both = bool(values[3]), bool(values[7])
    layers = min(values[4], len(values[2]))  # each layer has parameters: a text with more layers is wrong
    hidden, gates = state[-1], GATES[name] * state[-1]
    shapes: list[Shape] = []
    for layer in range(layers):
        width = x[-1] if layer == 0 else hidden * (1 + both)
        for _ in range(1 + both):
            shapes += [(gates, width), (gates, hidden)] + [(gates,), (gates,)] * biases
    for value, shape in zip(values[2], shapes):
        if isinstance(value, UnsolvedWeight) and not value.solved:
            value.settle(program.parameter(TensorType(F32, shape), value.place, value.path))


Rule = Callable[[ShapeRequest], Shape | None]
RULES: dict[str, Rule] = {
    "aten::linear": _linear, "aten::matmul": _product, "aten::mm": _product, "aten::addmm": _product, "aten::embedding": _embedding,
    "aten::_convolution": _convolution, "aten::convolution": _convolution, "aten::_convolution_mode": _convolution,
    "aten::conv1d": _convolution, "aten::conv2d": _convolution, "aten::conv3d": _convolution, "aten::expand": _expanded,
    "aten::index": _indexed, "aten::unsqueeze": _grown, "aten::transpose": _swapped,
    "aten::t": lambda query: tuple(reversed(query.result)) if query.result else None,
    "aten::outer": lambda query: (query.result[query.place],) if query.result and len(query.result) == 2 else None,
    "aten::prelu": lambda query: (1,) if query.place == 1 else None,
    "aten::group_norm": lambda query: (query.x[1],) if query.x and len(query.x) > 1 and query.place > 1 else None,
    **dict.fromkeys(("aten::batch_norm", "aten::instance_norm"), lambda query: (query.x[1],) if query.x and len(query.x) > 1 else None),
    **dict.fromkeys(("aten::layer_norm", "aten::rms_norm"),  # the normalised operand has the shape
                    lambda query: _sizes(query.values[1])),
    **dict.fromkeys(("aten::view", "aten::reshape", "aten::flatten"), lambda query: (prod(query.result),) if query.result else None),
}
SAME = frozenset("aten::" + n for n in (
    "detach contiguous clone relu exp neg sigmoid tanh softplus softmax abs sqrt slice dropout alias to float").split())
"""Operators whose result has the shape of their operand (a slice: at least that of its result)."""
RESHAPING = frozenset(("aten::expand", "aten::unsqueeze", "aten::transpose", "aten::view", "aten::reshape", "aten::flatten", "aten::index"))
ELEMENTWISE = frozenset("aten::" + n for n in "add sub mul div rsub maximum minimum pow".split())

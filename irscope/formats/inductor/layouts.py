"""Layouts of buffers as Inductor prints them, and the types that they give.

    FixedLayout('cpu', torch.float32, size=[32, s77], stride=[s77, 1], offset=4)
    NonOwningLayout(...)                     a view into another buffer
    MutationLayoutSHOULDREMOVE(...)          the buffer stands for a write into another one
    MultiOutputLayout(device=device(type='cpu'))
"""
from __future__ import annotations

import ast
from dataclasses import dataclass

from irscope.formats.inductor.python_text import constant_text, dotted, parse_expression, text_of
from irscope.graph import DTYPES, Dim, DType, DynamicDim, Layout, NamedType, TensorType, Type

BUFFER = NamedType("buffer")
"""The type of a buffer whose layout the text does not state."""

LARGEST = 1 << 62
"""Sizes and strides are 64-bit integers."""
_DTYPES = {dtype.numpy_name: dtype for dtype in DTYPES.values() if dtype.numpy_name}
"""torch's names of element types are those of numpy and ml_dtypes."""


@dataclass(frozen=True, slots=True)
class BufferLayout:
    """A layout: its class, the device, the element type and the sizes and strides as far as the text states them."""

    kind: str
    device: str = ""
    dtype: DType | None = None
    size: tuple[Dim, ...] = ()
    stride: tuple[Dim, ...] = ()
    offset: str = "0"

    @property
    def is_view(self) -> bool:
        """Whether the buffer lies in the memory of another one."""
        return self.kind == "NonOwningLayout"

    @property
    def mutates(self) -> bool:
        """Whether the buffer stands for a write into another one."""
        return self.kind.startswith("MutationLayout")

    def type(self) -> Type:
        """The tensor type, with the order of the dimensions in memory; of several results and of none a named type."""
        if self.dtype is None:
            return NamedType("buffers" if self.kind == "MultiOutputLayout" else self.kind or BUFFER.name)
        return TensorType(self.dtype, self.size, _order(self.stride) if len(self.stride) == len(self.size) else None)

    def __str__(self) -> str:
        if self.dtype is None:
            return self.kind
        size, stride = (", ".join(map(str, dims)) for dims in (self.size, self.stride))
        return f"{self.kind}({self.device}, {self.dtype.name}, [{size}], strides [{stride}])"


def parse_layout(text: str) -> BufferLayout | None:
    """The layout that a line states; None where it is none."""
    tree = parse_expression(text)
    if not isinstance(tree, ast.Call):
        return None
    kind = dotted(tree.func)
    named = {word.arg: word.value for word in tree.keywords}
    device = _device(tree.args[0] if tree.args else named.get("device"))
    dtype = dtype_named(dotted(tree.args[1])) if len(tree.args) > 1 else None
    offset = named.get("offset")
    return BufferLayout(kind, device, dtype, dims_of(named.get("size")), dims_of(named.get("stride")),
                        text_of(offset) if offset is not None else "0")


def dtype_named(name: str) -> DType | None:
    """The element type of ``torch.float32``; None for an unknown one."""
    return _DTYPES.get(name.rpartition(".")[2])


def dims_of(node: ast.expr | None) -> tuple[Dim, ...]:
    """The sizes of ``[32, s77]`` or ``(32, s77)``: numbers, and symbolic expressions as open dimensions of that name."""
    if not isinstance(node, ast.List | ast.Tuple):
        return ()
    return tuple(_dim(item) for item in node.elts)


def _dim(item: ast.expr) -> Dim:
    if isinstance(item, ast.Constant) and type(item.value) is int and item.value < LARGEST:
        return item.value
    return DynamicDim(text_of(item))


def _device(node: ast.expr | None) -> str:
    """``cuda:0`` of ``'cuda:0'`` or of ``device(type='cuda', index=0)``."""
    if isinstance(node, ast.Constant):
        return constant_text(node)
    if isinstance(node, ast.Call):
        given = [constant_text(word.value) for word in node.keywords if isinstance(word.value, ast.Constant)]
        return ":".join(given)
    return ""


def _order(strides: tuple[Dim, ...]) -> Layout | None:
    """The dimensions from the fastest to the slowest; None for the default order, and where a stride is not a number."""
    numbers = [stride for stride in strides if isinstance(stride, int)]
    if len(numbers) != len(strides):
        return None
    order = tuple(sorted(range(len(numbers)), key=lambda i: (numbers[i], -i)))
    return None if order == tuple(reversed(range(len(numbers)))) else Layout(order)

"""Types of operators that broadcast two operands, open dimensions included: ``?`` with 8 is 8, ``?`` with 1 is ``?``."""

from __future__ import annotations

from collections.abc import Callable

from irscope.formats.relay.algebra import shape_text, word_of
from irscope.graph import DynamicDim, TensorType, Type
from irscope.graph.dtypes import PRED
from irscope.graph.types import Dim
from irscope.ops.faults import TypeFault

Rule = Callable[..., Type | None]


def arithmetic_type(name: str) -> Rule:
    """The common shape, the operands' element type."""
    return lambda attrs, x, y: _both(name, x, y)


def comparison_type(name: str) -> Rule:
    """The common shape, bool."""

    def infer(attrs: object, x: Type, y: Type) -> Type | None:
        made = _both(name, x, y)
        return made.with_dtype(PRED) if made is not None else None

    return infer


def _both(name: str, x: Type, y: Type) -> TensorType | None:
    if not (isinstance(x, TensorType) and isinstance(y, TensorType)):
        return None
    if x.dtype is not y.dtype:
        raise TypeFault(f"{name} needs equal dtypes, got {word_of(x.dtype)} and {word_of(y.dtype)}", "insert a cast on one side")
    if x.shape == y.shape:
        return TensorType(x.dtype, x.shape)
    return TensorType(x.dtype, common(x.shape, y.shape))


def common(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The broadcast shape of two. Raises TypeFault when there is none."""
    out: list[Dim] = []
    for i in range(1, max(len(a), len(b)) + 1):
        m, n = (a[-i] if i <= len(a) else 1), (b[-i] if i <= len(b) else 1)
        if m == n or n == 1:
            out.append(m)
        elif m == 1:
            out.append(n)
        elif isinstance(m, int) and isinstance(n, int):
            raise TypeFault(f"cannot broadcast {shape_text(a)} with {shape_text(b)}: axis {-i} is {m} and {n}")
        elif isinstance(m, int) or isinstance(n, int):
            out.append(m if isinstance(m, int) else n)
        else:
            out.append(DynamicDim())
    return tuple(reversed(out))

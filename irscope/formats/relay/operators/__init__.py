"""Relay's operators: each a small expansion beside its declaration.

    @operator("nn.leaky_relu(data; alpha=0.25)", kind=Kind.ELEMENTWISE)
    def leaky_relu(t: Relay, a: Attributes, x: Node) -> Node:
        return t.select(t.compare("GT", x, t.like(x, 0)), x, t.scale(x, a.alpha))

Before the semicolon are the operands, ``indices: int 1d`` where not every tensor is allowed; after it the attributes in the order in
which Relay prints them: ``newshape!`` is required. ``kind`` is TVM's fusion pattern. The expansion determines types; to add
operators, write them in a family file here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from irscope.formats.families import import_families
from irscope.formats.relay.declarations import Attributes, RelayOperator, declared, enter, names, parse_schema
from irscope.formats.relay.inference import cost_of, infer_node
from irscope.graph import Effect, Kind, Op
from irscope.ops.registry import declare

__all__ = ["Attributes", "Operator", "declared", "load", "names", "opaque", "operator"]

FAMILIES = {
    "pointwise": "elementwise", "creation": "", "shape": "movement", "slicing": "movement", "reduction": "reduction",
    "dense": "contraction", "convolution": "contraction", "winograd": "contraction", "gemm": "contraction", "deformable": "contraction",
    "pooling": "reduction", "normalization": "reduction", "indexing": "movement", "spectral": "contraction", "image": "movement",
    "fused": "contraction",
}  # fmt: skip
"""The class of work (``Op.work``) of what a file declares; that of the kind where a file is not named here."""
F = TypeVar("F", bound=Callable[..., Any])
Infer = Callable[..., object] | None


def operator(*schemas: str, kind: Kind = Kind.OPAQUE, values: bool = False, infer: Infer = None, work: str = "", weight: int = 1
             ) -> Callable[[F], F]:
    """Declare what operators of these schemas do; several schemas are several names of one.

    ``work`` and ``weight`` are those of :class:`irscope.graph.Op`.
    """

    def build(function: F) -> F:
        doc = (function.__doc__ or "").strip().split("\n")[0]
        for text in schemas:
            made = RelayOperator(*parse_schema(text, "tensor"), kind, function, values, infer)
            family = FAMILIES.get(function.__module__.rpartition(".")[2], "")
            declare(Op(made.name, "relay", doc or f"``{text}``", kind, Effect.PURE, infer_node, expand=function, cost=cost_of,
                       work=work or family, weight=weight, traits=frozenset({"reads-values"} if values else ())))
            enter(made)
        return function

    return build


def opaque(*schemas: str, kind: Kind = Kind.OPAQUE, effect: Effect = Effect.PURE, infer: Infer = None) -> None:
    """Declare operators that irscope knows by name and cannot compute; ``infer`` computes their type where it is known."""
    for text in schemas:
        made = RelayOperator(*parse_schema(text, "any"), kind, None, False, infer)
        declare(Op(made.name, "relay", f"``{text}``", kind, effect, infer_node, cost=cost_of))
        enter(made)


load = partial(import_families, __name__)
"""Import the families, the modules of this folder (once)."""

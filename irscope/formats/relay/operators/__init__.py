"""Relay's operators: each a small expansion beside its declaration.

    @operator("nn.leaky_relu(data; alpha=0.25)", level=3, kind=Kind.ELEMENTWISE)
    def leaky_relu(t: Relay, a: Attributes, x: Node) -> Node:
        return t.select(t.compare("GT", x, t.like(x, 0)), x, t.scale(x, a.alpha))

In front of the semicolon stand the operands, ``indices: int 1d`` where not any tensor will do; behind it the attributes in the order in
which Relay prints them: ``newshape!`` must be given. ``kind`` is TVM's fusion pattern. Types follow from the expansion; to add
operators, write them in a family file here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar

from irscope.formats.relay.operators.signature import Attribute, Operand, bind_attributes, check_attributes, check_operands
from irscope.graph import Effect, Kind, Op, Type
from irscope.ops.registry import declare

FAMILIES = {
    "pointwise": "elementwise", "creation": "", "shape": "movement", "slicing": "movement", "reduction": "reduction",
    "dense": "contraction", "convolution": "contraction", "winograd": "contraction", "gemm": "contraction", "deformable": "contraction",
    "pooling": "reduction", "normalization": "reduction", "indexing": "movement", "sparse": "", "bits": "", "spectral": "contraction",
    "sorting": "", "image": "movement", "quantized": "", "vision": "", "suppression": "", "proposals": "", "threefry": "", "dynamic": "",
    "annotations": "", "fused": "contraction", "named": "",
}  # fmt: skip
"""The files that declare operators, and the class of their work (``Op.work``); that of the kind where a file has several."""
SCHEMA = re.compile(r"(?P<name>[\w.]+)\((?P<operands>[^;]*?)(?:;(?P<attributes>.*))?\)$")
Attributes = SimpleNamespace
F = TypeVar("F", bound=Callable[..., Any])

_table: dict[str, Operator] = {}
_loaded = False


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """What Relay's registry says of an operator, and what it expands to (None: nothing that irscope can compute).

    ``values`` marks operators whose result type depends on the values of constant operands.
    """

    name: str
    takes: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    level: int
    kind: Kind
    build: Callable[..., Any] | None
    values: bool = False
    infer: Callable[..., Any] | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of its operands."""
        return tuple(o.name for o in self.takes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its attributes, in the order in which they are printed."""
        return tuple(a.name for a in self.attributes)

    def bound(self, given: Mapping[str, Any]) -> Attributes:
        """The attributes of a call, defaults filled in; a string without a name stands for the next attribute that is a word."""
        return Attributes(**bind_attributes(self.attributes, given))

    def checked(self, types: Sequence[Type], given: Mapping[str, Any]) -> Attributes:
        """The attributes of a call whose operands have these types, defaults filled in. Raises TypeFault where it is not as declared."""
        check_operands(self.name, self.takes, types)
        values = bind_attributes(self.attributes, given)
        check_attributes(self.name, self.attributes, values)
        return Attributes(**values)


def operator(
    *schemas: str,
    kind: Kind = Kind.OPAQUE,
    level: int = 0,
    values: bool = False,
    infer: Callable[..., Any] | None = None,
    work: str = "",
    weight: int = 1,
) -> Callable[[F], F]:
    """Declare what operators of these schemas do; several schemas are several names of one.

    ``work`` and ``weight`` are those of :class:`irscope.graph.Op`.
    """

    def enter(function: F) -> F:
        for text in schemas:
            doc = (function.__doc__ or "").strip().split("\n")[0]
            made = _parsed(text, kind, level, function, values, infer)
            _enter(made, doc or f"``{text}``", work=work or FAMILIES.get(function.__module__.rpartition(".")[2], ""), weight=weight)
        return function

    return enter


def opaque(
    *schemas: str, level: int = 0, kind: Kind = Kind.OPAQUE, effect: Effect = Effect.PURE, infer: Callable[..., Any] | None = None
) -> None:
    """Declare operators that irscope knows by name, and does not compute; ``infer`` gives their type where it is known all the same."""
    for text in schemas:
        _enter(_parsed(text, kind, level, None, False, infer), f"``{text}``", effect)


def _parsed(text: str, kind: Kind, level: int, build: Callable[..., Any] | None, values: bool, infer: Any) -> Operator:
    found = SCHEMA.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no schema")
    default = "tensor" if build is not None else "any"
    operands = tuple(Operand.of(part.strip(), default) for part in found["operands"].split(",") if part.strip())
    attributes = tuple(Attribute.of(part) for part in _split(found["attributes"] or ""))
    return Operator(found["name"], operands, attributes, level, kind, build, values, infer)


def _enter(made: Operator, doc: str, effect: Effect = Effect.PURE, work: str = "", weight: int = 1) -> None:
    from irscope.formats.relay.inference import cost_of, infer_node

    declare(Op(made.name, "relay", doc, made.kind, effect, infer_node, expand=made.build, cost=cost_of, work=work, weight=weight))
    _table[made.name] = made


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [p for p in parts if p]


def declared(name: str) -> Operator | None:
    """The declaration of an operator, or None."""
    load()
    return _table.get(name)


def names() -> list[str]:
    """Every declared operator, in order."""
    load()
    return sorted(_table)


def load() -> None:
    """Import the families (once)."""
    global _loaded
    if not _loaded:
        _loaded = True
        for family in FAMILIES:
            import_module(f"{__name__}.{family}")

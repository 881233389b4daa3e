"""ONNX's operators: each a small expansion beside its schema.

    @operator("LeakyRelu(X; alpha=0.01)")
    def leaky_relu(t: Onnx, a: Attributes, x: Node) -> Node:
        return t.select(t.compare("LT", x, t.like(x, 0)), t.scale(x, a.alpha), x)

Before the semicolon are the operands (``B?`` may be left out and is None then, ``inputs*`` are any number), with what they must be
(``X: float[3+]``, see :mod:`irscope.formats.onnx.operands`), after it the attributes of all versions (``to: int|str!`` is required,
``pads: ints=None``). Both are checked before an expansion runs, which raises TypeFault for what the schema cannot say. Any other exception
is a defect of irscope. ``a.version`` is the version of the operators that the model asks for, and
``a.results`` the number of results that the node has. :func:`defined` declares operators that the standard itself defines by a function:
the package ``onnx`` has it. To add operators, write them in a family file here; everything else follows from the declaration.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from irscope.formats.families import import_families
from irscope.formats.onnx.declarations import Operator, parse_schema
from irscope.formats.onnx.inference import cost_of, enter, infer_node, table
from irscope.graph import Effect, Kind, Op
from irscope.ops.registry import declare, lookup_declared

FAMILIES = {
    "elementwise": (Kind.ELEMENTWISE, "elementwise"), "activations": (Kind.ELEMENTWISE, "elementwise"),
    "integers": (Kind.ELEMENTWISE, "elementwise"), "casts": (Kind.ELEMENTWISE, "elementwise"), "shape": (Kind.INJECTIVE, "movement"),
    "indexing": (Kind.INJECTIVE, "movement"), "scattering": (Kind.INJECTIVE, "movement"), "creation": (Kind.OPAQUE, "movement"),
    "reduction": (Kind.REDUCTION, "reduction"), "softmax": (Kind.REDUCTION, "reduction"), "normalization": (Kind.REDUCTION, "reduction"),
    "pooling": (Kind.REDUCTION, "reduction"), "loss": (Kind.REDUCTION, "reduction"), "convolution": (Kind.CONTRACTION, "contraction"),
    "linear": (Kind.CONTRACTION, "contraction"), "attention": (Kind.CONTRACTION, "contraction"),
    "recurrent": (Kind.CONTRACTION, "contraction"), "images": (Kind.INJECTIVE, "movement"),
}
"""How the operators of a file take part in fusion, and the class of their work (``Op.work``); opaque where a file is not named here."""
F = TypeVar("F", bound=Callable[..., Any])


def operator(*schemas: str, work: str = "") -> Callable[[F], F]:
    """Declare what the operators of these schemas do. ``work`` is that of :class:`irscope.graph.Op`."""
    def build(function: F) -> F:
        doc = (function.__doc__ or "").strip().split("\n")[0]
        for text in schemas:
            _declare(text, function.__module__, Operator(*parse_schema(text), function), doc, work)
        return function
    return build


def defined(*schemas: str, family: str) -> None:
    """Declare operators that the standard defines by functions. ``family`` is the file that declares them."""
    for text in schemas:
        _declare(text, family, Operator(*parse_schema(text), None, True), "", "")


def refused(*schemas: str, reason: str) -> None:
    """Declare operators that are known and shown, but not computed, for this reason."""
    for text in schemas:
        made = Operator(*parse_schema(text), None, False, reason)
        if lookup_declared(made.name, "onnx") is None:
            declare(Op(made.name, "onnx", reason, effect=Effect.PURE, work="custom"))
        enter(made)


def _declare(text: str, module: str, made: Operator, doc: str, work: str) -> None:
    kind, family = FAMILIES.get(module.rpartition(".")[2], (Kind.OPAQUE, "custom"))
    if lookup_declared(made.name, "onnx") is None:
        declare(Op(made.name, "onnx", doc or f"``{text}``", kind, Effect.PURE, infer_node, expand=made.build or _by_function,
                   cost=cost_of, work=work or family))
    enter(made)


def _by_function(*_: object) -> None:
    """Stands for the expansion of an operator that is run through the function which defines it."""


def declared(name: str) -> Operator | None:
    """The declaration of an operator, or None."""
    load()
    return table.get(name)


def names() -> list[str]:
    """Every declared operator, in order."""
    load()
    return sorted(table)


load = partial(import_families, __name__, "irscope.formats.onnx.structure")
"""Import the families, the modules of this folder (once)."""

"""torch's operators: each a small expansion beside its schema.

    @operator("leaky_relu(Tensor self, Scalar negative_slope=0.01)")
    def leaky_relu(t: Torch, x: Node, slope: float) -> Node:
        return t.select(t.compare("GT", x, t.like(x, 0)), x, t.scale(x, slope))

A ``pure`` operator takes nodes and returns nodes: a tuple for several results, a list for a list of tensors. In-place forms
(``leaky_relu_``) follow from it. A ``view`` returns a TensorView: functions that read it from its base and write it back, and its strides.
An ``alias`` also takes the layout of its operand, and returns a Decision: a view, a copy, or the operand itself. A ``raw`` operator takes
unconverted values (handles, lists) and the running program.

A function takes its parameters before a bare ``*`` by position, and those after it by their names in the schema. So one function can
implement schemas with different orders of arguments. With a ``*``, it ignores arguments that it does not name: they must not change the
result.

To add operators, write them in a family file here; everything else follows from the declaration. Where the strides of the result are
known, add its name to a list in ``layouts.py``.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from typing import Any, TypeVar

from irscope.formats.families import import_families
from irscope.formats.torchscript.drawing import drawing
from irscope.formats.torchscript.schema import Overload, Overloads, Schema, parse_schema
from irscope.graph import Effect, Kind, Op
from irscope.ops.registry import declare, lookup_declared

FAMILIES = {
    "arithmetic": "elementwise", "unary": "elementwise", "logic": "elementwise", "activations": "elementwise", "creation": "movement",
    "shape": "movement", "slices": "movement", "casts": "elementwise", "joining": "movement", "sizes": "", "reduction": "reduction",
    "norms": "reduction", "cumulative": "reduction", "softmax": "reduction", "linear": "contraction", "convolution": "contraction",
    "pooling": "reduction", "normalization": "reduction", "attention": "contraction", "transformer": "contraction",
    "indexing": "movement", "bins": "reduction", "sorting": "reduction", "unique": "reduction", "recurrent": "contraction",
    "packed": "movement", "interpolation": "movement", "grids": "movement", "matrices": "movement", "solving": "contraction",
    "decompositions": "contraction", "matrix_functions": "contraction", "loss": "reduction", "ctc": "reduction",
    "complex_numbers": "elementwise", "fourier": "contraction", "signals": "", "special": "elementwise", "bessel": "elementwise",
    "numbers": "elementwise", "copies": "movement", "quantized": "", "activation_gradients": "elementwise", "loss_gradients": "reduction",
    "norm_gradients": "reduction", "convolution_gradients": "contraction", "window_gradients": "reduction",
    "index_gradients": "movement", "distances": "reduction", "factors": "contraction", "attention_kernels": "contraction",
    "assertions": "", "decomposed": "elementwise", "foreach": "elementwise", "prims": "elementwise", "draws": "elementwise",
    "products": "contraction", "cells": "elementwise", "grid_gradients": "movement",
}
"""The files that declare operators, and the class of their work (``Op.work``), where an operator does not declare another."""

_table: dict[str, Overloads] = {}
# Structural operators are declared before the families, which add schemas to some of them; other formats import single families.
import_module("irscope.formats.torchscript.structure")
F = TypeVar("F", bound=Callable[..., Any])


def operator(*schemas: str, style: str = "pure", namespace: str = "aten", work: str = "", traits: str = "",
             effect: Effect = Effect.PURE, draws: bool = False) -> Callable[[F], F]:
    """Declare what operators of these schemas do. ``work``, ``traits`` and ``effect`` are those of :class:`irscope.graph.Op`.

    With ``draws``, a node takes numbers from torch's generator, which counts as an effect, except in evaluation or with probability 0.
    """
    def enter(function: F) -> F:
        for text in schemas:
            schema = parse_schema(text)
            name = schema.name if "::" in schema.name else f"{namespace}::{schema.name}"
            found = _table.get(name)
            if found is None:
                found = _table[name] = Overloads(name)
                if lookup_declared(name, "torchscript") is None:
                    doc = (function.__doc__ or "").strip().split("\n")[0]
                    family = FAMILIES.get(function.__module__.rpartition(".")[2], "")
                    declare(Op(name, "torchscript", doc or text, Kind.OPAQUE, effect, expand=function, work=work or family or "custom",
                               traits=frozenset(traits.split()), acts=drawing(schema) if draws else None))
            found.choices.append(Overload(schema, _by_name(schema, function, 2 if style == "alias" else 1), style))
        return function
    return enter


def _by_name(schema: Schema, function: Callable[..., Any], before: int) -> Callable[..., Any]:
    """A function that takes all arguments of the schema by position, and passes ``function`` its keyword-only ones by keyword.

    ``before`` is the number of other values in a call: the builder, and for an alias also the layout, which follows the first argument.
    """
    code = function.__code__
    if not code.co_kwonlyargcount:
        return function
    count = code.co_argcount
    named = code.co_varnames[count:count + code.co_kwonlyargcount]
    places = {argument.name: before + i for i, argument in enumerate(schema.arguments) if argument.name in named}

    @wraps(function)
    def ordered(*given: Any) -> Any:
        return function(*given[:count], **{name: given[at] for name, at in places.items()})
    return ordered


def view(*schemas: str) -> Callable[[F], F]:
    """Declare operators whose results are views of their first argument."""
    return operator(*schemas, style="view", traits="view")


def alias(*schemas: str, traits: str = "", draws: bool = False) -> Callable[[F], F]:
    """Declare operators that share the memory of their first argument depending on strides and types.

    The function takes ``(t, x, layout, ...)`` and returns a Decision, or a list of them; a list of tensors comes with a list of layouts.
    ``traits`` states what to assume where the types of a text leave that open: ``view``, ``dense-view``, ``cast`` or ``dropout``.
    """
    return operator(*schemas, style="alias", traits=traits, draws=draws)


def overloads(name: str) -> Overloads | None:
    """The overloads of a name, or None."""
    load()
    return _table.get(name)


def function_of(name: str, *families: str) -> Callable[..., Any]:
    """The function of an operator's first overload, which takes all arguments by position. Imports ``families`` first."""
    for family in families:
        import_module(f"{__name__}.{family}")
    return _table[name].choices[0].function


def names() -> list[str]:
    """Every operator that has an expansion, in order."""
    load()
    return sorted(_table)


load = partial(import_families, __name__)
"""Import the families, the modules of this folder (once)."""

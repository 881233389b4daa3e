"""Constructors and patterns of Relay's data types that do not match the declared types.

    type List { Cons(float32, List), Nil }
    Cons(1f)                                  Cons takes 2 fields, and gets 1
"""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import GraphFault
from irscope.formats.relay import structure
from irscope.formats.relay.attributes import Named, RelayModule
from irscope.formats.relay.functions import Pattern
from irscope.formats.relay.types import type_text
from irscope.graph import Module, Node, TensorType, TupleType
from irscope.source import did_you_mean


def data_faults(node: Node, module: Module) -> Iterator[GraphFault]:
    """Faults in a constructor's fields, or in the patterns of a ``match``."""
    declared = {name: len(fields) for made in RelayModule.of(module).types.values() for name, fields in made.items()}
    if node.op is structure.CONSTRUCTOR:
        name = Named.of(node).name
        if name in declared and node.operands and declared[name] != len(node.operands):
            yield GraphFault(node, f"{name} takes {_fields(declared[name])}, and gets {len(node.operands)}", about="type")
        return
    matched = node.operands[0]
    for body in node.bodies:
        pattern = body.notes.get("pattern")
        if pattern is not None and pattern[0] and isinstance(matched.type, TensorType | TupleType):
            said = f"the pattern {pattern[0]} does not fit %{matched.name}, which is {type_text(matched.type)}"
            yield GraphFault(node, said, about="type")
            continue
        for name, parts in _named(pattern):
            if name not in declared:
                yield GraphFault(node, f"the pattern {name} is not a constructor", did_you_mean(name, declared), about="type")
            elif parts and parts != declared[name]:
                yield GraphFault(node, f"the pattern {name} has {_fields(parts)}, the constructor {declared[name]}", about="type")


def _fields(count: int) -> str:
    return f"{count} field{'s' if count != 1 else ''}"


def _named(pattern: Pattern) -> Iterator[tuple[str, int]]:
    """The constructors in a pattern, each with its number of parts; the outermost comes first."""
    stack = [pattern]
    while stack:
        top = stack.pop()
        if top is None:
            continue
        name, inner = top
        if name:
            yield name, len(inner)
        stack.extend(reversed(inner))

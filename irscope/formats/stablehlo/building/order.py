"""The orders in which a module is built: callees before callers, regions before the operations around them."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from irscope.formats.stablehlo.attributes import Symbol
from irscope.formats.stablehlo.operations import Block, Function, Operation, nested
from irscope.graph import Node
from irscope.graph.walk import post_order


def callees_first(functions: Mapping[str, Function]) -> list[str]:
    """The functions, each after those that it calls."""
    calls = {name: [callee for callee in dict.fromkeys(_called(function)) if callee in functions] for name, function in functions.items()}
    return post_order(calls, calls.__getitem__)


def inner_first(body: Block) -> Iterator[Operation | Node]:
    """The operations with regions in a block and in those regions, each after those inside it, and the nodes with a body."""
    stack: list[tuple[Operation | None, Iterator[Operation | Node]]] = [(None, iter(body.operations))]
    while stack:
        owner, todo = stack[-1]
        found = next((each for each in todo if (each.bodies if isinstance(each, Node) else each.regions)), None)
        if found is None:
            stack.pop()
            if owner is not None:
                yield owner
        elif isinstance(found, Node):
            yield found
        else:
            stack.append((found, (o for region in found.regions for block in region.blocks for o in block.operations)))


CALLERS = frozenset(f"{dialect}.{name}" for dialect in ("func", "stablehlo", "mhlo") for name in ("call", "composite", "custom_call"))


def _called(function: Function) -> Iterator[str]:
    """The names of the functions that a function refers to, in the order of the text."""
    blocks = nested(function.body.operations) if function.body is not None else ()
    callers = [operation for operations in blocks for operation in operations if operation.name in CALLERS]
    for caller in sorted(callers, key=lambda operation: operation.begin):
        for value in caller.attributes.values():
            if isinstance(value, Symbol):
                yield value.name
            elif isinstance(value, tuple):
                yield from (part.name for part in value if isinstance(part, Symbol))

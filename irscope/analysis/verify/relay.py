"""What does not fit in a Relay module: operands that no operator takes, claimed types that are not the inferred ones, calls, branches.

def @f(%x: Tensor[(4), float32]) { nn.relu(%x) /* ty=Tensor[(5), float32] */ }
                                   the dump says Tensor[(5), float32], inferred Tensor[(4), float32]
"""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import Fault
from irscope.formats.relay.types import type_text
from irscope.graph import UNKNOWN, Graph, Module, NamedType, Node, TensorType, TupleType, Type
from irscope.graph.dtypes import PRED
from irscope.ops import TypeFault
from irscope.ops.shapes import fits


def relay_faults(module: Module) -> Iterator[tuple[Graph, Fault]]:
    """Everything that does not fit, with the graph that it is in."""
    for graph in module.graphs.values():
        for node in graph.nodes:
            for fault in _node(node):
                yield graph, fault
        declared, root = graph.notes.get("result", UNKNOWN), graph.root
        if root is not None and _comparable(declared) and _comparable(root.type) and not fits(declared, root.type):
            claim = f"@{graph.name} is declared to give {type_text(declared)}, but gives {type_text(root.type)}"
            yield graph, Fault(root, claim, about="shape")


def _node(node: Node) -> Iterator[Fault]:
    name = node.op.name
    if name == "call" and node.bodies:
        yield from _call(node, node.bodies[0])
    elif name == "if":
        yield from _if(node)
    elif node.op.dialect == "relay" and node.op.infer is not None and not any(o.type is UNKNOWN for o in node.operands):
        try:
            inferred = node.op.infer(node)
        except TypeFault as fault:
            yield Fault(node, fault.message, fault.help, about="dtype" if "equal dtypes" in fault.message else "type")
            return
        if _comparable(inferred) and _comparable(node.type) and not fits(node.type, inferred):
            yield Fault(node, f"the dump says {type_text(node.type)}, inferred {type_text(inferred)}", about="shape")


def _call(node: Node, callee: Graph) -> Iterator[Fault]:
    own = callee.params[: callee.notes.get("own", len(callee.params))]
    if len(own) != len(node.operands):
        yield Fault(node, f"@{callee.name} takes {len(own)} arguments, and gets {len(node.operands)}", about="type")
        return
    for param, operand in zip(own, node.operands, strict=True):
        if _comparable(param.type) and _comparable(operand.type) and not fits(param.type, operand.type):
            said = f"parameter %{param.name} of @{callee.name} is {type_text(param.type)}, and gets {type_text(operand.type)}"
            yield Fault(node, said, about="type")


def _if(node: Node) -> Iterator[Fault]:
    condition = node.operands[0].type
    if isinstance(condition, TensorType) and (condition.dtype is not PRED or condition.rank):
        yield Fault(node, f"the condition is {type_text(condition)}, not bool", about="type")
    roots = [body.root.type for body in node.bodies if body.root is not None]
    if len(roots) == 2 and all(map(_comparable, roots)) and not fits(roots[0], roots[1]):
        yield Fault(node, f"the branches give {type_text(roots[0])} and {type_text(roots[1])}", about="type")


def _comparable(type: Type) -> bool:
    """Whether a type is tensors alone, all known."""
    leaves = list(type.leaves())
    return isinstance(type, TensorType | TupleType) and not any(leaf is UNKNOWN or isinstance(leaf, NamedType) for leaf in leaves)

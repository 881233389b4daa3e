"""Type errors in a Relay module: operands that no operator accepts, stated types that are not the inferred ones, calls, branches.

def @f(%x: Tensor[(4), float32]) { nn.relu(%x) /* ty=Tensor[(5), float32] */ }
                                   the dump says Tensor[(5), float32], inferred Tensor[(4), float32]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.analysis.verify.data_types import data_faults
from irscope.analysis.verify.faults import GraphFault
from irscope.analysis.verify.recursion import endless_calls
from irscope.formats.relay import structure
from irscope.formats.relay.attributes import Callee, Named, RelayModule
from irscope.formats.relay.operators import declared
from irscope.formats.relay.signature import check_operands
from irscope.formats.relay.types import type_text
from irscope.graph import UNKNOWN, FunctionType, Graph, Module, NamedType, Node, TensorType, TupleType, Type
from irscope.graph.dtypes import PRED
from irscope.ops import TypeFault, hlo, lookup
from irscope.ops.attributes import GetTupleElement
from irscope.ops.sets import relay
from irscope.ops.shapes import fits
from irscope.source import did_you_mean

LOWERED = relay("call_lowered vm.invoke_tvm_op")
"""Operators that call functions which a Relay text may omit."""


def faults(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """All faults, with their graphs."""
    for graph in module.graphs.values():
        lowered = {o for node in graph.nodes if node.op in LOWERED for o in node.operands}
        for node in graph.nodes:
            if node not in lowered:
                yield from ((graph, fault) for fault in _node(node, graph, module))
        yield from ((graph, fault) for fault in endless_calls(graph))
        declared, root = graph.notes.get("result", UNKNOWN), graph.root
        if root is not None and _comparable(declared) and _comparable(root.type) and not fits(declared, root.type):
            claim = f"@{graph.name} is declared to give {type_text(declared)}, but gives {type_text(root.type)}"
            yield graph, GraphFault(root, claim, about="shape")


def _node(node: Node, graph: Graph, module: Module) -> Iterator[GraphFault]:
    op = node.op
    if op is structure.CALL and node.bodies:
        yield from _call(node, node.bodies[0])
    elif op is structure.CALL and Callee.callee.given(node) is None:
        yield from _value_call(node)
    elif op in (structure.CALL, structure.GLOBAL):
        yield from _global(node, graph, module)
    elif op is structure.IF:
        yield from _if(node)
    elif op is hlo.get_tuple_element:
        yield from _projection(node)
    elif op in (structure.CONSTRUCTOR, structure.MATCH):
        yield from data_faults(node, module)
    elif op in structure.OF_REFERENCES:
        yield from _count(node, op.name, structure.OF_REFERENCES[op], len(node.operands))
    elif op.is_primitive or op.infer is None:
        return
    elif any(o.type is UNKNOWN for o in node.operands):
        operator = declared(op.name)
        try:
            if operator is not None:
                check_operands(op.name, operator.takes, [o.type for o in node.operands])
        except TypeFault as fault:
            yield GraphFault(node, fault.message, fault.help, about="type")
    else:
        try:
            inferred = op.infer(node)
        except TypeFault as fault:
            yield GraphFault(node, fault.message, fault.help, about="dtype" if "equal dtypes" in fault.message else "type")
            return
        if _comparable(inferred) and _comparable(node.type) and not fits(node.type, inferred):
            yield GraphFault(node, f"the dump says {type_text(node.type)}, inferred {type_text(inferred)}", about="shape")


def _call(node: Node, callee: Graph) -> Iterator[GraphFault]:
    own = callee.params[: callee.notes.get("own", len(callee.params))]
    names = [f"parameter %{param.name} of @{callee.name}" for param in own]
    yield from _arguments(node, f"@{callee.name}", names, [p.type for p in own], node.operands)


def _value_call(node: Node) -> Iterator[GraphFault]:
    callee, *arguments = node.operands
    type = callee.type
    if isinstance(type, FunctionType):
        names = [f"argument {i + 1} of {_told(callee)}" for i in range(len(type.params))]
        yield from _arguments(node, _told(callee), names, type.params, arguments)
    elif isinstance(type, TensorType | TupleType):
        yield GraphFault(node, f"{_told(callee)} is called, but is {type_text(type)} and not a function", about="type")


def _told(node: Node) -> str:
    """The name of a value in the text; its operator where it has no name there."""
    return node.op.name if node.name.startswith(f"{node.op.name}.") else f"%{node.name}"


def _arguments(node: Node, what: str, names: Sequence[str], wanted: Sequence[Type], given: Sequence[Node]) -> Iterator[GraphFault]:
    """Arguments that are too few, too many, or of other types than a function takes."""
    if len(wanted) != len(given):
        yield from _count(node, what, len(wanted), len(given))
        return
    for name, type, operand in zip(names, wanted, given, strict=True):
        if _unlike(type, operand.type):
            yield GraphFault(node, f"{name} is {type_text(type)}, and gets {type_text(operand.type)}", about="type")


def _count(node: Node, what: str, wanted: int, given: int) -> Iterator[GraphFault]:
    """A fault if a function or operator gets another number of arguments than it takes."""
    if wanted != given:
        yield GraphFault(node, f"{what} takes {wanted} argument{'s' if wanted != 1 else ''}, and gets {given}", about="type")


def _unlike(a: Type, b: Type) -> bool:
    """Whether two types are known and incompatible."""
    if isinstance(a, FunctionType) or isinstance(b, FunctionType):
        return isinstance(a, TensorType) or isinstance(b, TensorType)
    return _comparable(a) and _comparable(b) and not fits(a, b)


def _global(node: Node, graph: Graph, module: Module) -> Iterator[GraphFault]:
    """A function of the module that the text does not define, and a value without its %."""
    name = Callee.callee.given(node) or Named.name.given(node) or ""
    known = {*module.graphs, *RelayModule.of(module).externs}
    if name.startswith("%") or name in known or lookup(name, "relay") is not None:
        return  # a function inside itself, one of the module, an operator as a value
    if module.source.text.startswith("@", max(node.loc, 0)):
        near = did_you_mean(name, known).replace("mean ", "mean @")
        yield GraphFault(node, f"`@{name}` is not defined", near or "no def of this text has this name", about="type")
    elif any(p.name == name for p in graph.params) or any(other.name == name for other in graph.nodes):
        yield GraphFault(node, f"`{name}` is not defined", f"did you mean `%{name}`?", about="type")
    else:
        yield GraphFault(node, f"`{name}` is not defined", "names of values begin with %, of functions with @", about="type")


def _projection(node: Node) -> Iterator[GraphFault]:
    """A field of a value that is not a tuple, or beyond the end of a tuple."""
    whole, index = node.operands[0], GetTupleElement.of(node).index
    if isinstance(whole.type, TupleType):
        fields = len(whole.type.elements)
        if index >= fields:
            has = f"has {fields} field{'s' if fields != 1 else ''}, the last is .{fields - 1}" if fields else "is empty"
            yield GraphFault(node, f"there is no .{index}: the tuple {has}", f"it is {type_text(whole.type)}", about="type")
    elif isinstance(whole.type, TensorType | FunctionType):
        yield GraphFault(node, f".{index} takes a field of a tuple, but {_told(whole)} is {type_text(whole.type)}", about="type")


def _if(node: Node) -> Iterator[GraphFault]:
    condition = node.operands[0].type
    plain = isinstance(condition, TensorType) and condition.dtype is PRED and not condition.rank
    if isinstance(condition, TensorType | TupleType | FunctionType) and not plain:
        yield GraphFault(node, f"the condition is {type_text(condition)}, not bool", about="type")
    roots = [body.root.type for body in node.bodies if body.root is not None]
    if len(roots) == 2 and _unlike(roots[0], roots[1]):
        yield GraphFault(node, f"the branches give {type_text(roots[0])} and {type_text(roots[1])}", about="type")


def _comparable(type: Type) -> bool:
    """Whether a type consists only of tensors, all known."""
    leaves = list(type.leaves())
    return isinstance(type, TensorType | TupleType) and not any(leaf is UNKNOWN or isinstance(leaf, NamedType) for leaf in leaves)

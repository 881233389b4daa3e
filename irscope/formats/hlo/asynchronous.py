"""async-start, async-update and async-done: adds the computation that sugared text implies, and checks the chain."""
from __future__ import annotations

from irscope.formats.hlo.assembly import UNDEFINED, Assembly
from irscope.formats.hlo.faults import ASYNC_CHAIN, OPERAND_COUNT, Span
from irscope.formats.hlo.opcodes import OPCODES, Opcode
from irscope.graph import NO_ATTRS, UNKNOWN, Graph, Node, TupleType

ASYNC_OWN = ("async_execution_thread", "output_to_operand_aliasing", "control_predecessors")
MAIN_THREAD = "main"


def wrap(assembly: Assembly, node: Node, opcode: str) -> None:
    """Give ``X-start`` the computation with one X that it implies, and move the attributes of X there."""
    graph = Graph(assembly.module.fresh_name("async_wrapped"), loc=node.loc, notes={"implicit": True})
    params = []
    for number, operand in enumerate(node.operands):
        name = f"async_param.{number}" if number else "async_param"
        params.append(graph.add(Node(assembly.op("parameter"), name, operand.type, (), {"number": number}, (), node.loc)))
    graph.params = params
    result = node.type.elements[1] if isinstance(node.type, TupleType) and len(node.type.elements) > 1 else UNKNOWN
    own = {name: value for name, value in node.attrs.items() if name not in ASYNC_OWN}
    graph.root = graph.add(Node(assembly.op(opcode), "async_op", result, tuple(params), own or NO_ATTRS, node.bodies, node.loc))
    takes = OPCODES[opcode].operands
    if takes is not None and takes != len(params):
        message = f"{opcode}-start takes {takes} operand{'s' * (takes != 1)}, but has {len(params)}"
        assembly.tell(OPERAND_COUNT, message, Span(node.loc, len(node.name), node.name))
        assembly.spoil(graph.root)
    assembly.module.graphs[graph.name] = graph
    node.attrs = {name: value for name, value in node.attrs.items() if name in ASYNC_OWN}
    node.bodies = (graph,)


def start_of(node: Node) -> Node | None:
    """The async-start at the beginning of a chain of updates."""
    while node.op.name in ("async-update", "async-done") and node.operands:
        node = node.operands[0]
    return node if node.op.name == "async-start" else None


def wrapped_opcode(start: Node) -> str:
    """The opcode that runs asynchronously."""
    graph = start.bodies[0] if start.bodies else None
    return graph.root.op.name if graph is not None and graph.root is not None else ""


def check_chain(assembly: Assembly, node: Node, spec: Opcode, word: str) -> None:
    """Check one link; ``word`` is the opcode as written. Updates and dones take everything else from their start."""
    if node.op.name == "async-start":
        _check_shape(assembly, node, word)
        if node.bodies:
            assembly.async_start(node.bodies[0], node)
        return
    if not node.operands:
        _tell(assembly, node, f"{word} has no operand, but continues an async-start (No operand found for AsyncUpdate and AsyncDone)")
        return
    before = node.operands[0]
    if before.op is UNDEFINED:
        return
    start = start_of(before) if before.op.name != "async-done" else None
    if start is None:
        message = f"AsyncUpdate and AsyncDone expect an asynchronous operation as their operand, but %{before.name} is {before.op.name}"
        _tell(assembly, node, message)
        return
    if node.op.name == "async-update":
        _check_shape(assembly, node, word)
    elif len(node.operands) != 1:
        _tell(assembly, node, f"{word} takes one operand, but has {len(node.operands)}")
    _check_same(assembly, node, start, spec)
    node.bodies = ()
    node.attrs = {name: value for name, value in node.attrs.items() if name == "control_predecessors"} or NO_ATTRS


def _check_same(assembly: Assembly, node: Node, start: Node, spec: Opcode) -> None:
    """Check that the attributes that a link repeats equal those of its start."""
    wrapped = wrapped_opcode(start)
    if spec.wraps and wrapped and spec.wraps != wrapped:
        _tell(assembly, node, f"Expect async wrapped opcode to be {wrapped}, which %{start.name} starts, but got {spec.wraps}")
    if node.bodies and start.bodies and node.bodies[0] is not start.bodies[0]:
        _tell(assembly, node, f"Expect async_wrapped_computation to be {start.bodies[0].name}, but got {node.bodies[0].name}")
    thread = start.attrs.get("async_execution_thread", MAIN_THREAD)
    own = node.attrs.get("async_execution_thread", thread)
    if own != thread:
        _tell(assembly, node, f"Expect async_execution_thread to be {thread}, but got {own}")


def _check_shape(assembly: Assembly, node: Node, word: str) -> None:
    type = node.type
    if type is UNKNOWN:
        return
    if not isinstance(type, TupleType) or len(type.elements) < 2 or not isinstance(type.elements[0], TupleType):
        _tell(assembly, node, f"AsyncStart and AsyncUpdate expect the shape to be ((operands), result, ...), but {word} has {type}")


def _tell(assembly: Assembly, node: Node, message: str) -> None:
    assembly.tell(ASYNC_CHAIN, message, Span(node.loc, len(node.name), node.name))

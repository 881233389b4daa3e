"""DTY002: operators in another dtype than the module is expected to run in."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.formats.torchscript.names import functional
from irscope.graph import UNKNOWN, Graph, Kind, Module, Node, TensorType
from irscope.lint.context import Context
from irscope.lint.gate import Gate
from irscope.lint.savings import human_bytes
from irscope.ops import hlo, sets
from irscope.source import Finding, Note, UserError, did_you_mean

DTYPES = ("f32", "f16", "bf16", "int8")
HALF = frozenset(("f16", "bf16"))
CASTS = sets.hlo("convert") | sets.relay("cast") | sets.torchscript("to type_as float half _to_copy bfloat16")
ACCUMULATE = (
    sets.hlo("reduce reduce-window all-reduce")
    | sets.relay("nn.softmax nn.log_softmax nn.layer_norm nn.batch_norm nn.group_norm nn.instance_norm sum mean nn.nll_loss cumsum")
    | sets.torchscript(
        "softmax log_softmax _softmax _log_softmax layer_norm native_layer_norm batch_norm group_norm instance_norm rms_norm norm sum mean "
        "var std logsumexp cross_entropy_loss nll_loss mse_loss cumsum"
    )
)
"""Operators that hold wide accumulators by design: normalisations, sums, losses."""
SOURCES = sets.hlo("parameter constant") | sets.torchscript("prim::Constant")
MAX_SHOWN = 20
UNTYPED = (str(UNKNOWN), "Tensor")
"""Types of values that may have any element type."""


class ExpectDtype(Gate):
    """Operators run in another dtype than was expected.

    ## What it does
    With ``--expect-dtype bf16`` (or ``f16``, ``f32``) finds islands: connected operators whose result is a floating type other than the
    expected one. If half precision is expected, wide accumulators are allowed: softmax, normalisations, reductions, and products that
    convert their result back. With ``int8``, finds products and convolutions with floating operands. ``--where QUERY`` restricts the check
    to the nodes that the query selects.

    ## Why is this bad?
    One literal or library call in ``f32`` promotes its neighbours: twice the traffic, casts on both sides, and an idle matrix unit.

    ## Example
    ```
    irscope lint model.hlo --expect-dtype bf16 --where 'scope~decoder'
    ```

    ## Use instead
    Cast the operand that introduces the wide type; give literals the dtype of the model; use ``preferred_element_type`` if only the
    accumulator should be wide.

    ## Known false positives
    Islands that are wide for accuracy and contain no reduction (a learning rate schedule, a position encoding): exclude them with
    ``--where`` or accept them with a suppression and its reason. Scalars are never reported.
    """

    code, name, option = "DTY002", "unexpected-dtype", "--expect-dtype"

    @classmethod
    def judge(cls, module: Module, expected: str, picked: Iterable[Node] | None = None) -> list[Finding]:
        """A finding for each island, the largest first. ``picked``: look at these nodes alone."""
        if expected not in DTYPES:
            raise UserError(f"{expected!r} cannot be expected", did_you_mean(expected, DTYPES) or f"one of {', '.join(DTYPES)} can")
        chosen = None if picked is None else {id(node) for node in picked}
        context = Context(module)
        islands = []
        for graph in context.view.array_graphs:
            odd = [node for node in graph.nodes if (chosen is None or id(node) in chosen) and _is_odd(node, expected)]
            found = [[node] for node in odd] if expected == "int8" else _islands(odd)
            islands += [(graph, island) for island in found if not _allowed(island, graph, expected, context)]
        islands.sort(key=lambda pair: -_bytes(pair[1]))
        findings = [cls._finding(module, graph, island, expected, context) for graph, island in islands[:MAX_SHOWN]]
        if len(islands) > MAX_SHOWN:
            n = sum(len(island) for _, island in islands[MAX_SHOWN:])
            findings.append(cls.broken(module, f"{n} more operators are not {expected}, in {len(islands) - MAX_SHOWN} islands"))
        return findings + cls._untyped(module, context, chosen)

    @classmethod
    def _untyped(cls, module: Module, context: Context, chosen: set[int] | None) -> list[Finding]:
        """A finding where operators have no known element type."""
        found = [(graph, node) for graph in context.view.array_graphs for node in graph.nodes
                 if node.op.kind is not Kind.LEAF and (chosen is None or id(node) in chosen) and str(node.type) in UNTYPED]
        if not found:
            return []
        names = ", ".join(f"%{node.name}" for _, node in found[:3])
        return [cls.broken(module, f"the text does not say the element type of {len(found)} values ({names})", at=found[0],
                           help="a text with types says it: torch.jit.trace(...).inlined_graph, or irscope opt --infer")]

    @classmethod
    def _finding(cls, module: Module, graph: Graph, island: list[Node], expected: str, context: Context) -> Finding:
        first = next((node for node in island if node.op not in CASTS), island[0])
        inside = {id(node) for node in island}
        dtypes = sorted({_dtype(node) for node in island} if expected != "int8" else {_dtype(o) for n in island for o in n.operands} - {""})
        into = sum(node.op in CASTS for node in island)
        out = sum(u.op in CASTS for node in island for u in context.view.users(node, graph) if id(u) not in inside)
        if expected == "int8":
            message = f"%{first.name} ({first.op.name}) takes {', '.join(dtypes)}, int8 is expected"
        else:
            count = "1 operator runs" if len(island) == 1 else f"{len(island)} operators run"
            message = f"{count} in {', '.join(dtypes)}, {expected} is expected: {human_bytes(_bytes(island))} of results"
        notes = tuple(
            Note(f"%{o.name} ({o.op.name}) brings {_dtype(o)} in", o.loc)
            for o in dict.fromkeys(o for node in island for o in node.operands)
            if id(o) not in inside and _dtype(o) in dtypes and o.op in SOURCES
        )[:3]
        if into or out:
            notes += (Note(f"casts: {into} into it, {out} out of it"),)
        return cls.broken(module, message, at=(graph, first), notes=notes, help="irscope lint --audit dtype shows all dtypes and casts")


def _dtype(node: Node) -> str:
    return node.type.dtype.name if isinstance(node.type, TensorType) else ""


def _is_odd(node: Node, expected: str) -> bool:
    """Whether a node works in a floating type that is not the expected one. Leaves and single numbers do not count."""
    if not isinstance(node.type, TensorType) or node.op.kind is Kind.LEAF:
        return False
    if expected == "int8":
        taken = [operand.type.dtype for operand in node.operands[:2] if isinstance(operand.type, TensorType)]
        return node.op.work == "contraction" and any(dtype.is_float for dtype in taken)
    return node.type.dtype.is_float and bool(node.type.shape) and node.type.dtype.name != expected


def _islands(odd: list[Node]) -> list[list[Node]]:
    """Sets of nodes that are joined by operands."""
    head = {id(node): node for node in odd}
    group: dict[int, int] = {key: key for key in head}

    def top(key: int) -> int:
        while group[key] != key:
            group[key] = group[group[key]]
            key = group[key]
        return key

    for node in odd:
        for operand in node.operands:
            if id(operand) in head:
                group[top(id(node))] = top(id(operand))
    found: dict[int, list[Node]] = {}
    for node in odd:
        found.setdefault(top(id(node)), []).append(node)
    return list(found.values())


def _allowed(island: list[Node], graph: Graph, expected: str, context: Context) -> bool:
    """Whether an island is an accumulator: wide around a reduction, or a product whose result is converted back at once."""
    if graph in context.view.inlined and any(node is graph.root for node in island):
        return True  # the fusion that runs this body is reported, or not, in its own graph
    if expected not in HALF or any(_dtype(node) != "f32" for node in island):
        return False
    working = [node for node in island if node.op not in CASTS]
    products = [node for node in working if node.op.work == "contraction"]
    if products:
        narrow = all(_dtype(o) == expected for node in products for o in node.operands[:2])
        back = all(u.op in CASTS for node in island for u in context.view.users(node, graph) if u not in island)
        return narrow and back and len(working) == len(products)
    sums = any(functional(node.op) in ACCUMULATE for node in working)
    inside = any(body in context.view.inlined and any(n.op is hlo.reduce for n in body.nodes) for node in working for body in node.bodies)
    return sums or inside or not working


def _bytes(island: list[Node]) -> int:
    return sum(node.type.bytes for node in island if isinstance(node.type, TensorType))

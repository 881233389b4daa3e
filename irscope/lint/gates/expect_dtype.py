"""DTY002: operators in another dtype than the module is expected to run in."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.graph import UNKNOWN, Graph, Kind, Module, Node
from irscope.lint.context import Context
from irscope.lint.gate import Gate
from irscope.lint.islands import CASTS, float_type, is_accumulator, is_odd, islands_of, results_bytes
from irscope.lint.savings import human_bytes
from irscope.ops import sets
from irscope.source import Finding, Note, UserError, did_you_mean

DTYPES = ("f32", "f16", "bf16", "int8")
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
            odd = [node for node in graph.nodes if (chosen is None or id(node) in chosen) and is_odd(node, expected)]
            found = [[node] for node in odd] if expected == "int8" else islands_of(odd)
            islands += [(graph, island) for island in found if not is_accumulator(island, graph, expected, context)]
        islands.sort(key=lambda pair: -results_bytes(pair[1]))
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
        taken = {float_type(operand) for node in island for operand in node.operands} - {""}
        dtypes = sorted({float_type(node) for node in island} if expected != "int8" else taken)
        into = sum(node.op in CASTS for node in island)
        out = sum(u.op in CASTS for node in island for u in context.view.users(node, graph) if id(u) not in inside)
        if expected == "int8":
            message = f"%{first.name} ({first.op.name}) takes {', '.join(dtypes)}, int8 is expected"
        else:
            count = "1 operator runs" if len(island) == 1 else f"{len(island)} operators run"
            message = f"{count} in {', '.join(dtypes)}, {expected} is expected: {human_bytes(results_bytes(island))} of results"
        notes = tuple(
            Note(f"%{o.name} ({o.op.name}) brings {float_type(o)} in", o.loc)
            for o in dict.fromkeys(o for node in island for o in node.operands)
            if id(o) not in inside and float_type(o) in dtypes and o.op in SOURCES
        )[:3]
        if into or out:
            notes += (Note(f"casts: {into} into it, {out} out of it"),)
        return cls.broken(module, message, at=(graph, first), notes=notes, help="irscope lint --audit dtype shows all dtypes and casts")

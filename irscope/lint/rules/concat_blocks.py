"""FUS010: a tensor is put together from many pieces and then worked on as one."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Graph, Kind, Node
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import human_bytes, saving
from irscope.lint.values import MOVES, behind, size
from irscope.source import Note, Severity

MANY = 8
"""XLA's limit: a concatenation of more pieces is no part of a fusion."""
WORTH_BYTES = 64 * 1024
PIECES = frozenset(("slice", "dynamic-slice"))


class ConcatBlocks(Rule):
    """More than eight pieces are concatenated, and elementwise work on the whole follows.

    ## What it does
    Finds `concatenate` of more than 8 operands with a result of 64 KiB and more that elementwise work reads. It is a warning where the
    pieces are slices of one value; pieces from different places are information, one finding a module.

    ## Why is this bad?
    XLA fuses no concatenation of more than eight pieces, so the result is written and read again (measured: 11.8 ms became 0.7 ms).

    ## Example
    ```
    %c = f32[10,65536] concatenate(%s0, %s1, ..., %s9), dimensions={0}
    %y = f32[10,65536] tanh(%c)
    ```

    ## Use instead
    Do the elementwise work on the value before it is cut; `jnp.take` or `reshape` and `transpose` instead of slices put together again.

    ## Known false positives
    Pieces of different sources, which have to be brought together somewhere.
    """

    code, name, severity = "FUS010", "concat-blocks", Severity.WARNING
    structural = True
    bad = (
        Fixture.hlo(
            "ENTRY e {\n  x = f32[10,8192] parameter(0)\n"
            + "".join(f"  k{i} = f32[1,8192] slice(x), slice={{[{9 - i}:{10 - i}], [0:8192]}}\n" for i in range(10))
            + f"  c = f32[10,8192] concatenate({', '.join(f'k{i}' for i in range(10))}), dimensions={{0}}\n"
            "  ROOT y = f32[10,8192] tanh(c)\n}",
            "c",
        ),
        Fixture.hlo(
            "ENTRY e {\n"
            + "".join(f"  p{i} = f32[1,8192] parameter({i})\n" for i in range(9))
            + f"  c = f32[9,8192] concatenate({', '.join(f'p{i}' for i in range(9))}), dimensions={{0}}\n"
            "  ROOT y = f32[9,8192] exponential(c)\n}",
            "c",
        ),
    )
    good = (
        Fixture.hlo(
            "ENTRY e {\n"
            + "".join(f"  p{i} = f32[1,8192] parameter({i})\n" for i in range(8))
            + f"  c = f32[8,8192] concatenate({', '.join(f'p{i}' for i in range(8))}), dimensions={{0}}\n"
            "  ROOT y = f32[8,8192] exponential(c)\n}"
        ),
        Fixture.hlo(
            "ENTRY e {\n"
            + "".join(f"  p{i} = f32[1,8192] parameter({i})\n" for i in range(9))
            + f"  ROOT c = f32[9,8192] concatenate({', '.join(f'p{i}' for i in range(9))}), dimensions={{0}}\n}}"
        ),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        apart: list[tuple[Node, Graph, Node]] = []
        for node, graph in context.primitives("concatenate"):
            reader = _reader(context, graph, node) if len(node.operands) > MANY and size(node) >= WORTH_BYTES else None
            if reader is None:
                continue
            source = _cut_from(node)
            if source is None:
                apart.append((node, graph, reader))
                continue
            whence = f": all are slices of %{source.name}"
            yield self._finding(context, graph, node, reader, whence, "before the value is cut", self.severity)
        if apart:
            node, graph, reader = max(apart, key=lambda a: size(a[0]))
            more = f"; {len(apart) - 1} more like this" if len(apart) > 1 else ""
            yield self._finding(context, graph, node, reader, more, "on the pieces, where they are made", Severity.INFO)

    def _finding(
        self, context: Context, graph: Graph, node: Node, reader: Node, more: str, where: str, severity: Severity
    ) -> RuleFinding:
        return context.finding(
            self,
            node,
            graph,
            f"{len(node.operands)} pieces ({human_bytes(size(node))}) are put together for %{reader.name} ({reader.op.name}){more}",
            severity=severity,
            notes=(Note(f"%{reader.name} works on the whole", reader.loc),),
            help=f"do the {reader.op.name} {where}",
            saves=saving(bytes=2.0 * size(node), kernels=1.0),
        )


def _cut_from(node: Node) -> Node | None:
    """The one value that all pieces are slices of."""
    sources = {behind(o, MOVES | PIECES | {"get-tuple-element"}) for o in node.operands}
    cut = len(sources) == 1 and all(behind(o, MOVES).op.name in PIECES for o in node.operands)
    return next(iter(sources)) if cut else None


def _reader(context: Context, graph: Graph, node: Node) -> Node | None:
    """Elementwise work on the result, behind reshapes."""
    todo = [node]
    for at in todo:
        for user in context.users(at, graph):
            if user.op.kind is Kind.ELEMENTWISE and user.op.dialect == "hlo":
                return user
            if user.op.name in MOVES and len(todo) < 8:
                todo.append(user)
    return None

"""ALG001: every run computes a value that depends on constants alone."""

from __future__ import annotations

from irscope.analysis.values import CALLS, MOVES, cone, size
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, human_bytes
from irscope.ops import hlo

GROWTH = 64 * 1024
"""A folded result larger than this makes the file grow too much for the time it saves, so that the finding is information."""
FREE = MOVES | hlo.named("constant iota broadcast convert tuple get-tuple-element slice concatenate pad")
"""Operators that do no work on constants: a folded result would only be longer text."""
HEAVY = (Kind.CONTRACTION, Kind.REDUCTION)
WORTH = 4096
"""The number of elements from which elementwise work counts."""


class ConstantSubgraph(Rule):
    """A value is computed from constants alone, again in every run.

    ## What it does
    Finds the last operators of subgraphs that depend on no parameter and in which at least one operator works on 4096 elements or more.

    ## Why is this bad?
    The result is always the same. It can be a constant, or a weight that is computed once.

    ## Use instead
    Compute it with numpy before the model is traced, or freeze the model; keep large tables as parameters.

    ## Known false positives
    Masks and positions are cheaper to compute than to read. XLA folds small cases itself, so findings in text from before optimisation
    are information; so are results of more than 64 KiB, because a constant of that size would make the file grow.
    """

    code, name, severity = "ALG001", "constant-subgraph", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8192] parameter(0)
              i = s32[8192] iota(), iota_dimension=0
              f = f32[8192] convert(i)
              s = f32[8192] sine(f)
              ROOT r = f32[8192] multiply(x, s)
            }
        """,
            "s",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[2] parameter(0)
              i = f32[2,8192] iota(), iota_dimension=1
              b = f32[2] constant({1, 2})
              d = f32[8192] dot(b, i), lhs_contracting_dims={0}, rhs_contracting_dims={0}
              s = f32[2] slice(d), slice={[4:6]}
              n = f32[2] negate(s)
              ROOT r = f32[2] add(x, n)
            }
        """,
            "n",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,256] parameter(0)
              i = f32[64,128] iota(), iota_dimension=0
              s = f32[64,128] sine(i)
              c = f32[64,128] cosine(i)
              p = f32[64,256] concatenate(s, c), dimensions={1}
              ROOT r = f32[64,256] add(x, p)
            }
        """,
            "p",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(65536)):
              %n : int = prim::Constant[value=65536]()
              %six : int = prim::Constant[value=6]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %r : Float(65536) = aten::arange(%n, %six, %none, %none, %none)
              %e : Float(65536) = aten::exp(%r)
              %y : Float(65536) = aten::mul(%x, %e)
              return (%y)
        """,
            "e",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(65536), float32]) {
              %0 = ones(shape=[65536], dtype="float32");
              %1 = cumsum(%0, axis=0);
              %2 = exp(%1);
              %3 = multiply(%x, %2);
              %3
            }
        """,
            "2",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8192] parameter(0)
              one = f32[] constant(1)
              b = f32[8192] broadcast(one), dimensions={}
              ROOT r = f32[8192] add(x, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              i = s32[8] iota(), iota_dimension=0
              f = f32[8] convert(i)
              s = f32[8] multiply(f, f)
              ROOT r = f32[8] multiply(x, s)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(65536)):
              %e : Float(65536) = aten::exp(%x)
              %y : Float(65536) = aten::mul(%x, %e)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(65536), float32]) {
              %0 = cumsum(%x, axis=0);
              exp(%0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            known = context.view.known_early(graph)
            if graph in context.view.inlined or not any(known):
                continue
            for node in graph.nodes:
                if not known[node.index] or (node.op in FREE and not _is_table(node)) or not node.op.is_primitive:
                    continue
                users = context.view.users(node, graph)
                if users and all(known[u.index] and u.op is not hlo.tuple for u in users):
                    continue
                yield from self._judge(context, graph, node)

    def _judge(self, context: Context, graph: Graph, node: Node) -> Findings:
        work = [n for n in cone(node) if n.op not in FREE and not _only_free(n)]
        uniform = context.view.uniform(graph)
        dear = [n for n in work if _elements(n) >= WORTH and len(uniform[n.index]) < _rank(n)]
        if not dear:
            return
        large = size(node) > GROWTH
        yield self.finding(
            context, node,
            f"%{node.name} is the same in every run: {len(work)} operations on constants give {human_bytes(size(node))}",
            notes=tuple(Note(f"{n.op.name} %{n.name} is one of them", n.loc) for n in dear[:3] if n is not node),
            help="compute it once, before the model is traced" + (", and pass it as a parameter" if large else ""),
            saves=Edit({node: lambda site: site.given(node)}),
        ).with_severity(None if not large and (context.view.optimised or any(n.op.kind in HEAVY for n in dear)) else Severity.INFO)


def _is_table(node: Node) -> bool:
    """Whether a node joins computed values: positions are encoded as sines and cosines side by side."""
    return node.op is hlo.concatenate and all(operand.op not in FREE for operand in node.operands)


def _only_free(node: Node) -> bool:
    """Whether the node is a fusion or call that contains only free operators."""
    return node.op in CALLS and all(n.op in FREE or not n.operands for body in node.bodies for n in body.nodes)


def _elements(node: Node) -> int:
    """How many elements an operator visits: those of its result, or of the operand that it reduces."""
    return max((t.elements for t in (node.type, *(o.type for o in node.operands)) if isinstance(t, TensorType)), default=0)


def _rank(node: Node) -> int:
    """The number of axes longer than 1."""
    return sum(1 for d in getattr(node.type, "shape", ()) if d != 1)

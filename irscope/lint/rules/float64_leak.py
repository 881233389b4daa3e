"""DTY001: double precision in a graph that has no double-precision input."""

from __future__ import annotations

from functools import partial

from irscope.analysis.values import written
from irscope.graph import DTYPES, Node, TensorType, Type
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, RuleFinding, Severity, Site, human_bytes, plural
from irscope.lint.islands import islands_of
from irscope.lint.torch_nodes import CONSTANT
from irscope.ops import hlo, sets

DOUBLE = {"f64": "f32", "c128": "c64"}
"""Double precision, and what it is in single."""
CONVERSIONS = sets.hlo("convert") | sets.relay("cast") | sets.torchscript("to type_as double")
PASSED = hlo.named("parameter get-tuple-element tuple")
"""Operators that only pass on values from elsewhere."""
LISTED = 3
"""Other beginnings that are named."""


class Float64Leak(Rule):
    """Double precision appears in a graph that has no double-precision input.

    ## What it does
    Reports the node where ``f64`` (or ``c128``) first appears (a constant, an iota, otherwise a conversion) and counts the nodes it spreads
    to. One finding for each connected group of double-precision nodes; the notes list the values converted to match it.

    ## Why is this bad?
    It is usually a promoted Python float or a NumPy constant without a dtype. Vectors hold half as many elements, traffic doubles, and GPUs
    for inference compute ``f64`` at 1/32 to 1/64 of the speed of ``f32``.

    ## Use instead
    Give literals a dtype (``jnp.float32(0.5)``, ``torch.tensor(0.5, dtype=x.dtype)``), create arrays with ``dtype=``,
    and leave ``jax_enable_x64`` off.

    ## Known false positives
    A sum that is computed in double precision for accuracy. Scalars that are not combined with an array are information. The rule is off
    for programs with ``f64`` inputs and for programs without a value of another type: they use ``f64`` on purpose.
    """

    code, name, severity = "DTY001", "float64-leak", Severity.ERROR
    fix = Fix.REWRITE
    timed = False
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[8] parameter(0)
              w = f64[8] convert(p)
              s = f64[8] multiply(w, w)
              ROOT r = f32[8] convert(s)
            }
        """,
            "w",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              p = s32[8] parameter(0)
              c = f64[] constant(0.5)
              b = f64[8] broadcast(c), dimensions={}
              w = f64[8] convert(p)
              ROOT r = f64[8] add(w, b)
            }
        """,
            "c",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(64)):
              %seven : int = prim::Constant[value=7]()
              %six : int = prim::Constant[value=6]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %d : Double(64) = aten::to(%x, %seven, %f, %f, %none)
              %y : Double(64) = aten::exp(%d)
              %z : Float(64) = aten::to(%y, %six, %f, %f, %none)
              return (%z)
        """,
            "d",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(64), float32]) {
              %0 = cast(%x, dtype="float64");
              %1 = exp(%0);
              %2 = cast(%1, dtype="float32");
              %2
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              p = f64[8] parameter(0)
              c = f64[] constant(2)
              b = f64[8] broadcast(c), dimensions={}
              ROOT r = f64[8] add(p, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              p = f32[8] parameter(0)
              ROOT r = f16[8] convert(p)
            }
        """),
        Fixture.hlo("""
            inner {
              a = f64[8] parameter(0)
              c = f64[] constant(0)
              b = f64[8] broadcast(c), dimensions={}
              ROOT m = f64[8] maximum(a, b)
            }
            ENTRY e {
              p = f32[8] parameter(0)
              q = f64[8] parameter(1)
              ROOT r = f64[8] call(q), to_apply=inner
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              c = f64[2,2] constant({{4, 2}, {2, 3}})
              ROOT r = f64[2,2] cholesky(c), lower=true
            }
        """),
        Fixture.torchscript("""
            graph(%x : Double(64)):
              %y : Double(64) = aten::exp(%x)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(64), float64]) {
              exp(%x)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        entry = context.module.main()
        if any(_is_double(leaf) for param in entry.params for leaf in param.type.leaves()) or not _has_narrower(context):
            return
        for graph in context.view.array_graphs:
            for spread in islands_of([node for node in graph.nodes if _is_double(node.type)]):
                origins = [node for node in spread if self._begins(node)]
                if origins and not any(node.op is hlo.parameter for node in spread):  # such a group begins in the caller
                    yield self._finding(context, spread, origins)

    @staticmethod
    def _begins(node: Node) -> bool:
        if not _is_double(node.type) or node.op in PASSED:
            return False
        if node.op in CONSTANT and isinstance(node.type, TensorType) and not node.type.rank:
            return False  # a trace records Python numbers so; they take the type of the other operand
        return not node.bodies and not any(_is_double(leaf) for o in node.operands for leaf in o.type.leaves())

    def _finding(self, context: Context, spread: list[Node], origins: list[Node]) -> RuleFinding:
        # A converted value was converted to match a value that is f64 at its origin.
        node = next((n for n in origins if n.op not in CONVERSIONS), origins[0])
        wasted = sum(n.type.bytes // 2 for n in spread if isinstance(n.type, TensorType))
        dtype = node.type.dtype.name if isinstance(node.type, TensorType) else "f64"
        return self.finding(
            context, node,
            f"{dtype} begins here, in a graph without {dtype} inputs, and spreads to {plural(len(spread), 'node')}"
            f" ({human_bytes(wasted)} too much)",
            notes=tuple(Note(f"%{n.name} ({n.op.name}) is used with it", n.loc) for n in [n for n in origins if n is not node][:LISTED]),
            help="give the literal or the conversion the element type of its neighbours",
            saves=Edit({n: partial(_halved, n) for n in _computed(context, spread)}),
        ).with_severity(None if any(not _is_number(n.type) for n in spread) else Severity.INFO)


def _is_number(type: Type) -> bool:
    """Whether it is known to be a scalar: a wide scalar costs nothing, but may become a leak when it is combined with an array."""
    return isinstance(type, TensorType) and type.is_static and type.elements == 1


def _computed(context: Context, spread: list[Node]) -> list[Node]:
    """The nodes that the plan contains: the same nodes in HLO, the primitives that they expand to in other formats."""
    if context.module.dialect.primitive or context.view.primitive is None:
        return spread
    wide = set(spread)
    return [node for node in context.view.primitive.main().nodes if written(node) in wide and _is_double(node.type)]


def _halved(node: Node, site: Site) -> Node:
    """The node at half the width; called computations keep their types, and their operands are converted."""
    assert isinstance(node.type, TensorType)
    if node.bodies:
        return site.copy(node, *(_as(site, site.new(o), o.type) for o in node.operands))
    half = node.type.with_dtype(DTYPES[DOUBLE[node.type.dtype.name]])
    given = (site.new(o) for o in node.operands)
    return site.copy(node, *(_as(site, o, _narrow(o.type)) for o in given), type=half)


def _narrow(type: Type) -> Type:
    return type.with_dtype(DTYPES[DOUBLE[type.dtype.name]]) if isinstance(type, TensorType) and type.dtype.name in DOUBLE else type


def _as(site: Site, node: Node, type: Type) -> Node:
    """The value in an element type, converted if it has another."""
    if not isinstance(type, TensorType) or node.type == type:
        return node
    return site.op(hlo.convert, node, type=type)


def _has_narrower(context: Context) -> bool:
    """Whether any value of the module has a narrower element type than double: if none has, double precision is intended."""
    return any(
        leaf.dtype.name not in DOUBLE and (leaf.dtype.is_float or leaf.dtype.is_complex or bool(leaf.shape))
        for graph in context.view.array_graphs
        for node in graph.nodes
        for leaf in node.type.leaves()
        if isinstance(leaf, TensorType) and leaf.dtype.name != "pred"
    )


def _is_double(type: object) -> bool:
    return isinstance(type, TensorType) and type.dtype.name in DOUBLE

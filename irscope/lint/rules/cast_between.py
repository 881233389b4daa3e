"""FUS002: a conversion between a product and its activation prevents fusion."""

from __future__ import annotations

from functools import partial

from irscope.analysis.values import dims, is_annotation
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site
from irscope.ops import hlo

ANCHORS = hlo.named("dot convolution reduce-window reduce custom-call")

_PRODUCT = """
            ENTRY e {{
              x = f32[512,512]{{1,0}} parameter(0)
              w = f32[512,512]{{1,0}} parameter(1)
              d = f32[512,512]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              {0}
              a = {1}[512,512]{{1,0}} negate({2})
              b = {1}[512,512]{{1,0}} abs({2})
              ROOT t = ({1}[512,512]{{1,0}}, {1}[512,512]{{1,0}}) tuple(a, b)
            }}
        """


class CastBetween(Rule):
    """A conversion between a product and elementwise operators on its result prevents them from fusing.

    ## What it does
    Finds conversions of the result of a product, convolution, window or reduction that elementwise operators read. In a copy of the graph
    it removes the conversion if the next one undoes it, and otherwise moves it after the elementwise operators; it plans the copy again by
    the chosen policy and reports only what saves time.

    ## Why is this bad?
    Some compilers count a conversion to a narrower type as expensive, and store its result rather than recompute it in the consumer.

    ## Use instead
    Compute the activation in the type of the product and convert the result: this rounds once less.

    ## Known false positives
    The narrow type may be intended, to reproduce the results of another program bit for bit.
    """

    code, name, severity = "FUS002", "cast-between", Severity.WARNING
    fix = Fix.REWRITE
    structural, only_gains = True, True
    bad = (
        Fixture.hlo(_PRODUCT.format("c = bf16[512,512]{1,0} convert(d)", "bf16", "c"), "c", policy="xla-cpu"),
        Fixture.hlo(
            _PRODUCT.format("n = bf16[512,512]{1,0} convert(d)\n              c = f32[512,512]{1,0} convert(n)", "f32", "c"),
            "c",
            policy="xla-cpu",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(512, 512), %w : Float(512, 512)):
              %bf : int = prim::Constant[value=15]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %d : Float(512, 512) = aten::mm(%x, %w)
              %c : BFloat16(512, 512) = aten::to(%d, %bf, %f, %f, %none)
              %a : BFloat16(512, 512) = aten::neg(%c)
              %b : BFloat16(512, 512) = aten::abs(%c)
              %r : (BFloat16(512, 512), BFloat16(512, 512)) = prim::TupleConstruct(%a, %b)
              return (%r)
        """,
            "c",
            policy="xla-cpu",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(512, 512), float32], %w: Tensor[(512, 512), float32]) {
              %0 = nn.dense(%x, %w);
              %1 = cast(%0, dtype="bfloat16");
              %2 = negative(%1);
              %3 = abs(%1);
              %4 = (%2, %3);
              %4
            }
        """,
            "1",
            policy="xla-cpu",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = bf16[1024,1024] parameter(0)
              s = bf16[1024,1024] custom-call(x), custom_call_target="Sharding", sharding={devices=[2,1]<=[2]}
              c = f32[1024,1024] convert(s)
              ROOT n = f32[1024,1024] negate(c)
            }
        """),
        Fixture.hlo(_PRODUCT.format("c = bf16[512,512]{1,0} convert(d)", "bf16", "c"), policy="irscope"),
        Fixture.hlo(_PRODUCT.format("", "f32", "d"), policy="xla-cpu"),
        Fixture.torchscript(
            """
            graph(%x : Float(512, 512), %w : Float(512, 512)):
              %bf : int = prim::Constant[value=15]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %d : Float(512, 512) = aten::mm(%x, %w)
              %a : Float(512, 512) = aten::neg(%d)
              %c : BFloat16(512, 512) = aten::to(%a, %bf, %f, %f, %none)
              return (%c)
        """,
            policy="xla-cpu",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(512, 512), float32], %w: Tensor[(512, 512), float32]) {
              %0 = nn.dense(%x, %w);
              %1 = negative(%0);
              cast(%1, dtype="bfloat16")
            }
        """,
            policy="xla-cpu",
        ),
    )

    def check(self, context: Context) -> Findings:
        for cast, graph in context.view.primitives(hlo.convert):
            anchor = _anchor(context, graph, cast)
            if anchor is None or graph in context.view.inlined:
                continue
            users = context.view.users(cast, graph)
            work = [u for u in users if u.op.kind is Kind.ELEMENTWISE and u.op is not hlo.convert and dims(u) == dims(cast)]
            if not work or len(work) < len(users):
                continue
            undone = cast.type == anchor.type
            changes = {user: partial(_as_it_is if undone else _before, user, cast, anchor) for user in work}
            names = " and ".join(f"%{user.name} ({user.op.name})" for user in work[:2])
            yield self.finding(
                context, cast,
                f"%{cast.name} converts the result of %{anchor.name} ({anchor.op.name}), {anchor.type}, to {cast.type} before {names}: "
                "without it there are fewer kernels",
                notes=(Note(f"%{anchor.name} is here", anchor.loc),),
                help=f"use %{anchor.name} as it is" if undone else "do the elementwise work first, and convert its result",
                saves=Edit(changes, (anchor,)),
            )


def _anchor(context: Context, graph: Graph, cast: Node) -> Node | None:
    """The product whose result the conversion reads, directly or through another conversion that has no other user."""
    source = cast.operands[0]
    if source.op is hlo.convert and len(context.view.users(source, graph)) == 1:
        inner = source.operands[0]
        source = inner if inner.type == cast.type else source
    if is_annotation(source):
        return None
    return source if source.op in ANCHORS and len(context.view.users(source, graph)) == 1 else None


def _as_it_is(user: Node, cast: Node, anchor: Node, site: Site) -> Node:
    """The user of a pair of conversions, reading the pair's operand instead."""
    return site.copy(user, *(site.new(anchor if operand is cast else operand) for operand in user.operands))


def _before(user: Node, cast: Node, anchor: Node, site: Site) -> Node:
    """The user computed in the type of the product, with its result converted."""
    assert isinstance(anchor.type, TensorType) and isinstance(user.type, TensorType) and isinstance(cast.type, TensorType)
    wide, given = anchor.type.dtype, []
    for operand in user.operands:
        if operand is cast:
            given.append(site.new(anchor))
        elif isinstance(operand.type, TensorType) and operand.type.dtype is cast.type.dtype:
            given.append(site.op(hlo.convert, site.new(operand), type=operand.type.with_dtype(wide)))
        else:
            given.append(site.new(operand))
    if user.type.dtype is not cast.type.dtype:
        return site.copy(user, *given)
    return site.op(hlo.convert, site.copy(user, *given, type=user.type.with_dtype(wide)), type=user.type)

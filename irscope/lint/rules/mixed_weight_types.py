"""DTY009: weights of one kind of layer have different float types."""

from __future__ import annotations

from irscope.analysis.values import size
from irscope.graph import Node, TensorType
from irscope.lint import Context, Findings, Fix, Fixture, Note, Rule, Severity, human_bytes
from irscope.lint.quantised import products, stored


class MixedWeightTypes(Rule):
    """The weights of matrix products, or of convolutions, come in more than one float type.

    ## What it does
    Compares the stored types of parameters and constants that products read as weights. If the weights of one operator have several
    float types, reports the first product with the rarer type, and the number of weights of each type.

    ## Why is this bad?
    It costs conversions, and usually shows that a conversion of the model missed some layers.

    ## Use instead
    Store all weights of a kind in one type: `jax.tree.map(lambda w: w.astype(jnp.bfloat16), params)`, `model.to(torch.bfloat16)`.

    ## Known false positives
    Routers, embeddings and last layers are sometimes kept in a wider type on purpose.
    """

    code, name, severity = "DTY009", "mixed-weight-types", Severity.INFO
    fix = Fix.NONE
    structural = True
    timed = False
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,16] parameter(0)
              v = f32[16,16] parameter(1)
              u = f32[16,16] parameter(2)
              w = bf16[16,16] parameter(3)
              a = f32[8,16] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              b = f32[8,16] dot(a, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              c = f32[16,16] convert(w)
              ROOT d = f32[8,16] dot(b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f16[8,16] parameter(0)
              v = f16[16,16] parameter(1)
              w = f32[32,16] parameter(2)
              a = f16[8,16] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              f = f32[8,16] convert(a)
              t = f32[16,32] transpose(w), dimensions={1,0}
              ROOT d = f32[8,32] dot(f, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "a",
        ),
        Fixture.torchscript("""
            graph(%x : Float(8, 64), %h : Half(8, 64), %v : Float(64, 64), %w : Half(64, 64)):
              %a : Float(8, 64) = aten::mm(%x, %v)
              %b : Half(8, 64) = aten::mm(%h, %w)
              %r : (Float(8, 64), Half(8, 64)) = prim::TupleConstruct(%a, %b)
              return (%r)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 64), float32], %h: Tensor[(8, 64), float16], %v: Tensor[(64, 64), float32], %w: Tensor[(64, 64),
            float16]) {
              %0 = nn.dense(%x, %v);
              %1 = nn.dense(%h, %w);
              %2 = (%0, %1);
              %2
            }
        """),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,16] parameter(0)
              v = bf16[16,16] parameter(1)
              c = f32[16,16] convert(v)
              ROOT a = f32[8,16] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,16] parameter(0)
              v = bf16[16,16] parameter(1)
              w = bf16[16,32] parameter(2)
              c = f32[16,16] convert(v)
              a = f32[8,16] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              d = f32[16,32] convert(w)
              ROOT b = f32[8,32] dot(a, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 64), %v : Float(64, 64), %w : Float(64, 64)):
              %a : Float(8, 64) = aten::mm(%x, %v)
              %b : Float(8, 64) = aten::mm(%a, %w)
              return (%b)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 64), float32], %v: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32]) {
              %0 = nn.dense(%x, %v);
              nn.dense(%0, %w)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        kinds: dict[str, dict[str, list[tuple[Node, Node]]]] = {}
        for node, graph in products(context.view):
            weight = stored(node.operands[1]) if len(node.operands) > 1 else None
            if weight is None or graph in context.view.inlined:
                continue
            if isinstance(weight.type, TensorType) and weight.type.dtype.is_float:
                kinds.setdefault(node.op.name, {}).setdefault(weight.type.dtype.name, []).append((node, weight))
        for kind, types in kinds.items():
            if len(types) < 2:
                continue
            rare = min(types, key=lambda t: len(types[t]))
            node, weight = types[rare][0]
            table = ", ".join(f"{len({w for _, w in found})} in {t} ({human_bytes(sum(size(w) for _, w in found))})"
                              for t, found in types.items())
            yield self.finding(
                context, node,
                f"weights of {kind} have several types: {table}",
                notes=(Note(f"%{weight.name} is {weight.type}", weight.loc),),
                help="store all of them in one type",
            )

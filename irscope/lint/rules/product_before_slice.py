"""ALG014: a product computes rows that no operator reads."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fix, Fixture, Note, Rule, Severity, if_it_saves, plural
from irscope.lint.pulling import KEEPERS, pulled

WORTH = 2
"""The smallest ratio of computed to kept rows that is reported."""

_LOGITS = """
    ENTRY e {{
      h = f32[4,64,128] parameter(0)
      w = f32[128,8000] parameter(1)
      c = f32[8000] parameter(2)
      d = f32[4,64,8000] dot(h, w), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
      b = f32[4,64,8000] broadcast(c), dimensions={{2}}
      a = f32[4,64,8000] add(d, b)
      {0}
    }}
"""


class ProductBeforeSlice(Rule):
    """A matrix product computes rows or columns that are sliced away.

    ## What it does
    Finds slices and gathers of at most half of a dimension that is a free or batch dimension of a product before them, also through
    elementwise operators, reductions and transposes, if nothing else reads what they drop. In a copy of the graph the slice is pulled up
    to the operands, and the copy is planned again.

    ## Why is this bad?
    The product computes all rows. The logits of every position, of which sampling reads the last, take as many times as long as there are
    positions (measured, 64 positions: 4.6 ms and 0.5 ms), and are written to memory.

    ## Use instead
    Slice the operand: `h[:, -1] @ w` instead of `(h @ w)[:, -1]`.

    ## Known false positives
    None known: if the same program needs the other rows elsewhere, it is not reported.
    """

    code, name, severity = "ALG014", "product-before-slice", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(_LOGITS.format("ROOT s = f32[4,1,8000] slice(a), slice={[0:4], [63:64], [0:8000]}"), "d"),
        Fixture.hlo(
            """
            ENTRY e {
              h = f32[512,128] parameter(0)
              w = f32[128,8000] parameter(1)
              p = s32[2,2] parameter(2)
              d = f32[512,8000] dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              t = f32[512,8000] tanh(d)
              ROOT g = f32[2,2,8000] gather(t, p), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2,
                slice_sizes={1,8000}
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              h = f32[128,512] parameter(0)
              w = f32[128,8000] parameter(1)
              i = s32[] parameter(2)
              z = s32[] constant(0)
              d = f32[8000,512] dot(w, h), lhs_contracting_dims={0}, rhs_contracting_dims={0}
              t = f32[512,8000] transpose(d), dimensions={1,0}
              ROOT s = f32[8,8000] dynamic-slice(t, i, z), dynamic_slice_sizes={8,8000}
            }
        """,
            "d",
        ),
        Fixture.torchscript(
            """
            graph(%h : Float(4, 64, 128), %w : Float(8000, 128), %c : Float(8000)):
              %one : int = prim::Constant[value=1]()
              %last : int = prim::Constant[value=-1]()
              %d : Float(4, 64, 8000) = aten::linear(%h, %w, %c)
              %s : Float(4, 8000) = aten::select(%d, %one, %last)
              return (%s)
        """,
            "d",
        ),
        Fixture.relay(
            """
            def @main(%h: Tensor[(256, 128), float32], %w: Tensor[(8000, 128), float32], %c: Tensor[(8000), float32]) {
              %0 = nn.dense(%h, %w);
              %1 = nn.bias_add(%0, %c);
              %2 = strided_slice(%1, begin=[255, 0], end=[256, 8000], strides=[1, 1]);
              %2
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo(_LOGITS.format("ROOT s = f32[4,48,8000] slice(a), slice={[0:4], [16:64], [0:8000]}")),
        Fixture.hlo(
            _LOGITS.format(
                "s = f32[4,1,8000] slice(a), slice={[0:4], [63:64], [0:8000]}\n"
                "      ROOT t = (f32[4,1,8000], f32[4,64,8000]) tuple(s, a)"
            )
        ),
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,128] parameter(0)
              w = f32[128,384] parameter(1)
              d = f32[64,384] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              q = f32[64,128] slice(d), slice={[0:64], [0:128]}
              k = f32[64,128] slice(d), slice={[0:64], [128:256]}
              v = f32[64,128] slice(d), slice={[0:64], [256:384]}
              s = f32[64,128] add(q, k)
              ROOT r = f32[64,128] add(s, v)
            }
        """),
        Fixture.torchscript("""
            graph(%h : Float(4, 64, 128), %w : Float(8000, 128), %c : Float(8000)):
              %one : int = prim::Constant[value=1]()
              %last : int = prim::Constant[value=-1]()
              %s : Float(4, 128) = aten::select(%h, %one, %last)
              %d : Float(4, 8000) = aten::linear(%s, %w, %c)
              return (%d)
        """),
        Fixture.relay("""
            def @main(%h: Tensor[(256, 128), float32], %w: Tensor[(8000, 128), float32]) {
              %0 = strided_slice(%h, begin=[255, 0], end=[256, 128], strides=[1, 1]);
              nn.dense(%0, %w)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for keeper, graph in context.view.primitives(*KEEPERS):
            found = pulled(context.view, keeper, graph) if graph not in context.view.inlined else None
            if found is None or found.pads or found.part.kept * WORTH > found.part.size:
                continue
            product, part = found.products[0], found.part
            before = f", after {plural(len(found.products) - 1, 'product')} of the same rows" if len(found.products) > 1 else ""
            yield from if_it_saves(self.finding(
                context, product,
                f"%{product.name} computes {part.size} rows or columns{before}, and %{keeper.name} ({keeper.op.name}) keeps {part.kept}",
                notes=(Note(f"%{keeper.name} is here: {keeper.type}", keeper.loc),),
                help=f"{keeper.op.name} first, and multiply what is kept",
                saves=found.edit,
            ))

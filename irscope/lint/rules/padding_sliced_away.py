"""ALG015: padding goes through products, and is sliced away again."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fix, Fixture, Note, Rule, Severity, if_it_saves, plural
from irscope.lint.pulling import KEEPERS, pulled

WORTH = 1.1
"""The smallest ratio of padded to kept rows that is reported: padding to a round size is often faster."""

_PADDED = """
    ENTRY e {{
      x = f32[4,129,256] parameter(0)
      w = f32[256,1024] parameter(1)
      v = f32[1024,256] parameter(2)
      z = f32[] constant(0)
      p = f32[4,256,256] pad(x, z), padding=0_0x{0}_{1}x0_0
      d = f32[4,256,1024] dot(p, w), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
      t = f32[4,256,1024] tanh(d)
      e = f32[4,256,256] dot(t, v), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
      ROOT s = f32[4,129,256] slice(e), slice={{[0:4], [0:129], [0:256]}}
    }}
"""


class PaddingSlicedAway(Rule):
    """A value is padded, goes through matrix products, and the padding is sliced away.

    ## What it does
    Finds pads and slices of the same dimension with products between them that treat each row for itself, if the padding is a tenth or
    more of what is kept. In a copy of the graph the padding is left out, and the copy is planned again.

    ## Why is this bad?
    The products compute the padding too (measured, 129 rows padded to 256: 9.9 ms and 5.1 ms).

    ## Use instead
    Leave the padding out, or pad to the next multiple of 8 only; pad a batch once, at its source, where several shapes would be compiled.

    ## Known false positives
    Machines whose products are so much slower on odd sizes that the padding pays.
    """

    code, name, severity = "ALG015", "padding-sliced-away", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(_PADDED.format(0, 127), "p"),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[65,256] parameter(0)
              w = f32[256,1024] parameter(1)
              z = f32[] constant(0)
              p = f32[128,256] pad(x, z), padding=31_32x0_0
              d = f32[128,1024] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT s = f32[65,1024] slice(d), slice={[31:96], [0:1024]}
            }
        """,
            "p",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(129, 256), %w : Float(1024, 256), %b : Float(1024)):
              %zero : int = prim::Constant[value=0]()
              %one : int = prim::Constant[value=1]()
              %more : int = prim::Constant[value=127]()
              %end : int = prim::Constant[value=129]()
              %fill : float = prim::Constant[value=0.]()
              %mode : str = prim::Constant[value="constant"]()
              %pads : int[] = prim::ListConstruct(%zero, %zero, %zero, %more)
              %p : Float(256, 256) = aten::pad(%x, %pads, %mode, %fill)
              %d : Float(256, 1024) = aten::linear(%p, %w, %b)
              %s : Float(129, 1024) = aten::slice(%d, %zero, %zero, %end, %one)
              return (%s)
        """,
            "p",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(129, 256), float32], %w: Tensor[(1024, 256), float32]) {
              %0 = nn.pad(%x, 0f, pad_width=[[0, 127], [0, 0]]);
              %1 = nn.dense(%0, %w);
              %2 = strided_slice(%1, begin=[0, 0], end=[129, 1024], strides=[1, 1]);
              %2
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo(_PADDED.format(100, 27)),
        Fixture.hlo("""
            ENTRY e {
              x = f32[129,256] parameter(0)
              w = f32[256,1024] parameter(1)
              d = f32[129,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT t = f32[129,1024] tanh(d)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(129, 256), %w : Float(1024, 256), %b : Float(1024)):
              %d : Float(129, 1024) = aten::linear(%x, %w, %b)
              return (%d)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(129, 256), float32], %w: Tensor[(1024, 256), float32]) {
              nn.dense(%x, %w)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for keeper, graph in context.view.primitives(*KEEPERS):
            found = pulled(context.view, keeper, graph) if graph not in context.view.inlined else None
            if found is None or not found.pads or found.part.size < WORTH * found.part.kept:
                continue
            pad, part = found.pads[0], found.part
            yield from if_it_saves(self.finding(
                context, pad,
                f"%{pad.name} pads to {part.size}, and %{keeper.name} keeps {part.kept} of them: "
                f"{plural(len(found.products), 'product')} in between compute the padding",
                notes=(Note(f"%{keeper.name} is here: {keeper.type}", keeper.loc),),
                help="leave the padding out",
                saves=found.edit,
            ))

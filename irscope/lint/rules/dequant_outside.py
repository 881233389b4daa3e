"""DTY005: quantised weights are converted to floats before the product."""

from __future__ import annotations

from irscope.analysis.values import size
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes, saving
from irscope.lint.gemm_kernels import Kernels
from irscope.lint.quantised import dequantised, products

WORTH_BYTES = 16 * 1024
"""Smaller operands stay in the caches."""
FEW = 32
"""The weights are at least so many times as large as the result where reading them is most of the work: on one core an integer product of
8 rows by 1024 x 1024 weights took two thirds of the time of the converted one, and one of 64 rows took longer (docs/lint/evidence.md)."""


class DequantOutside(Rule):
    """Integers of 8 bits or fewer are converted to floats before a matrix product or convolution reads them.

    ## What it does
    Finds products with an operand that was converted from `s8`, `u8`, `s4` or `u4` to a float, also through a scale and a zero point. It is
    information if the weights are less than 32 times the result: then the arithmetic takes longer than reading them. Under the policy
    `xla-gpu` the rule follows XLA's GemmFusion: it ignores conversions that GemmFusion fuses into the product's kernel, and gives
    GemmFusion's reason for the others.

    ## Why is this bad?
    The floats are written out and read again, at four times the bytes that quantisation saved, and the product runs at float speed.

    ## Use instead
    Multiply integers (`lax.dot_general(x8, w8, preferred_element_type=int32)`) and scale the result; the scale of a column of weights is a
    scale of a column of results.

    ## Known false positives
    Kernels that read quantised weights and convert them in registers; weight-only quantisation that is meant to save memory, not time.
    """

    code, name, severity = "DTY005", "dequant-outside", Severity.WARNING
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,512] parameter(0)
              q = s8[512,512] parameter(1)
              w = f32[512,512] convert(q)
              ROOT d = f32[8,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = bf16[8,512] parameter(0)
              q = u8[256,512] parameter(1)
              s = bf16[512] parameter(2)
              w = bf16[256,512] convert(q)
              b = bf16[256,512] broadcast(s), dimensions={1}
              m = bf16[256,512] multiply(w, b)
              t = bf16[512,256] transpose(m), dimensions={1,0}
              ROOT d = bf16[8,256] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "d",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 512), %w : Char(512, 512), %s : Float(512)):
              %six : int = prim::Constant[value=6]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %c : Float(512, 512) = aten::to(%w, %six, %f, %f, %none)
              %d : Float(512, 512) = aten::mul(%c, %s)
              %y : Float(8, 512) = aten::mm(%x, %d)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 512), float32], %w: Tensor[(512, 512), int8], %s: Tensor[(512), float32]) {
              %0 = cast(%w, dtype="float32");
              %1 = multiply(%0, %s);
              %2 = nn.dense(%x, %1);
              %2
            }
        """,
            "2",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = s8[8,512] parameter(0)
              q = s8[512,512] parameter(1)
              ROOT d = s32[8,512] dot(x, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,512] parameter(0)
              q = bf16[512,512] parameter(1)
              w = f32[512,512] convert(q)
              ROOT d = f32[8,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 512), %w : Float(512, 512), %s : Float(512)):
              %d : Float(512, 512) = aten::mul(%w, %s)
              %y : Float(8, 512) = aten::mm(%x, %d)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 512), int8], %w: Tensor[(512, 512), int8]) {
              nn.dense(%x, %w, out_dtype="int32")
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        kernels = Kernels(context)
        for node, graph in products(context.view):
            for operand in dict.fromkeys(node.operands[:2]):
                first = dequantised(operand)
                if first is None or size(operand) < WORTH_BYTES:
                    continue
                answer = kernels.answer(first, operand, node, graph)
                if answer is not None and answer.is_inside:
                    continue
                source = first.operands[0]
                evidence = (Note(answer.says, node.loc),) if answer is not None else ()
                yield self.finding(
                    context, node,
                    f"%{source.name} {source.type} becomes {operand.type} before {node.op.name} reads it: "
                    f"{human_bytes(size(source))} grow to {human_bytes(size(operand))}",
                    notes=(Note(f"%{first.name} converts it to floats", first.loc), *evidence),
                    help="multiply the integers with a wider result type, and scale that"
                    + (f"; or have XLA convert inside the product's kernel: {answer.help}" if answer is not None and answer.help else ""),
                    saves=saving(bytes=float(2 * size(operand) - size(source)), kernels=1.0),
                ).with_severity(None if size(node) * FEW <= size(operand) else Severity.INFO)

"""DTY008: a boolean mask is converted to floats and applied by multiplication."""

from __future__ import annotations

from irscope.analysis.values import MOVES, number
from irscope.graph import Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.ops import hlo

UNCHANGED = MOVES | hlo.named("broadcast")


class BoolAsFloatMask(Rule):
    """A boolean mask is converted to floats and multiplied in, where a select is meant.

    ## What it does
    Finds `multiply` with an operand converted from `pred`, also through reshapes and broadcasts.

    ## Why is this bad?
    `0 * nan` and `0 * inf` are `nan`, so a masked value can still reach the result. A select needs no conversion and has no such fault.

    ## Use instead
    `jnp.where(mask, x, 0)`, `torch.where`, `masked_fill`.

    ## Known false positives
    Values that are known to be finite; gradients of comparisons, which frameworks write this way.
    """

    code, name, severity = "DTY008", "bool-as-float-mask", Severity.INFO
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8] parameter(0)
              m = pred[8] parameter(1)
              f = f32[8] convert(m)
              ROOT y = f32[8] multiply(x, f)
            }
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = bf16[4,8] parameter(0)
              m = pred[8] parameter(1)
              f = bf16[8] convert(m)
              b = bf16[4,8] broadcast(f), dimensions={1}
              ROOT y = bf16[4,8] multiply(b, x)
            }
        """,
            "y",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(256), %m : Bool(256)):
              %six : int = prim::Constant[value=6]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %c : Float(256) = aten::to(%m, %six, %f, %f, %none)
              %y : Float(256) = aten::mul(%x, %c)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(256), float32], %m: Tensor[(256), bool]) {
              %0 = cast(%m, dtype="float32");
              %1 = multiply(%x, %0);
              %1
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              m = pred[8] parameter(1)
              z = f32[] constant(0)
              b = f32[8] broadcast(z), dimensions={}
              ROOT y = f32[8] select(m, x, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              n = s32[8] parameter(1)
              f = f32[8] convert(n)
              ROOT y = f32[8] multiply(x, f)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(256), %m : Bool(256), %z : Float(256)):
              %y : Float(256) = aten::where(%m, %x, %z)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(256), float32], %m: Tensor[(256), float32]) {
              multiply(%x, %m)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, _ in context.view.primitives(hlo.multiply):
            if not isinstance(node.type, TensorType) or not node.type.dtype.is_float or len(node.operands) != 2:
                continue
            for mask, other in (node.operands, node.operands[::-1]):
                cast = _mask(mask)
                if cast is None or number(other) is not None or _mask(other) is not None:
                    continue
                yield self.finding(
                    context, node,
                    f"the mask %{cast.operands[0].name} becomes {node.type.dtype} and is multiplied in: this does not mask nan or infinity",
                    notes=(Note(f"%{cast.name} converts it", cast.loc),),
                    help=f"select by %{cast.operands[0].name}: where(mask, x, 0)",
                )
                break


def _mask(node: Node) -> Node | None:
    """The conversion from booleans that produces the value."""
    at = behind(node, UNCHANGED)
    if at.op is hlo.convert and at.operands:
        source = at.operands[0].type
        if isinstance(source, TensorType) and source.dtype.kind == "pred" and number(at) is None:
            return at
    return None

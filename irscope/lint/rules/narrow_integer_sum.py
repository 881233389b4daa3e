"""DTY011: a sum of integers in a type that does not hold it."""
from __future__ import annotations

from math import prod

from irscope.analysis.values import MOVES, dims, reduces
from irscope.graph import Node, TensorType
from irscope.lint import Context, Findings, Fixture, Rule
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Dot, Reduce
from irscope.source import Severity

NARROW = 16
"""Bits up to which a sum is looked at: programs choose 32 bits and more as integers without bounds."""


class NarrowIntegerSum(Rule):
    """A sum or product of 8- or 16-bit integers is accumulated in 8 or 16 bits, and may overflow.

    ## What it does
    Finds integer `dot`, `convolution` and `reduce` with an addition whose result has 16 bits or fewer, and whose operands' types allow sums
    that it does not hold. Sums of booleans count their terms.

    ## Why is this bad?
    Integers wrap around: two products of 100 x 100 do not fit 8 bits, and the result is an arbitrary number. Nothing warns at run time.

    ## Use instead
    Accumulate in 32 bits and requantise: `preferred_element_type=jnp.int32`, `torch.sum(x)` without a narrow `dtype`, `out_dtype="int32"`.

    ## Known false positives
    Values that are known to be small, and arithmetic modulo 256 on purpose (hashes).
    """

    code, name, severity = "DTY011", "narrow-integer-sum", Severity.WARNING
    timed = False
    structural = inside = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              a = s8[8,64] parameter(0)
              b = s8[64,8] parameter(1)
              ROOT d = s8[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            add {
              a = u8[] parameter(0)
              b = u8[] parameter(1)
              ROOT s = u8[] add(a, b)
            }
            ENTRY e {
              m = pred[300] parameter(0)
              c = u8[300] convert(m)
              z = u8[] constant(0)
              ROOT r = u8[] reduce(c, z), dimensions={0}, to_apply=add
            }
        """,
            "r",
        ),
        Fixture.torchscript(
            """
            graph(%x : Char(8, 64)):
              %one : int = prim::Constant[value=1]()
              %char : int = prim::Constant[value=1]()
              %f : bool = prim::Constant[value=0]()
              %at : int[] = prim::ListConstruct(%one)
              %s : Char(8) = aten::sum(%x, %at, %f, %char)
              return (%s)
        """,
            "s",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 64), int8]) {
              %0 = sum(%x, axis=[1]);
              %0
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            add {
              a = u8[] parameter(0)
              b = u8[] parameter(1)
              ROOT s = u8[] add(a, b)
            }
            ENTRY e {
              a = s8[8,64] parameter(0)
              b = s8[64,8] parameter(1)
              m = pred[200] parameter(2)
              c = u8[200] convert(m)
              z = u8[] constant(0)
              r = u8[] reduce(c, z), dimensions={0}, to_apply=add
              d = s32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT t = (u8[], s32[8,8]) tuple(r, d)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Char(8, 64)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %at : int[] = prim::ListConstruct(%one)
              %s : Long(8) = aten::sum(%x, %at, %f, %none)
              return (%s)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 64), int8]) {
              %0 = cast(%x, dtype="int32");
              sum(%0, axis=[1])
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, _ in context.view.primitives(hlo.dot, hlo.convolution, hlo.reduce):
            type = node.type
            if not isinstance(type, TensorType) or not type.dtype.is_integer or type.dtype.bits > NARROW:
                continue
            terms = _terms(node)
            largest = terms * prod(_largest(operand) for operand in (node.operands[:1] if node.op is hlo.reduce else node.operands))
            if largest > _limit(type):
                yield self.finding(
                    context, node,
                    f"{terms} terms are summed in {type.dtype.name}: the operands allow sums up to {largest}, and it holds {_limit(type)}",
                    help="accumulate in s32 and convert the result",
                )


def _terms(node: Node) -> int:
    """How many terms each element of the result sums; 0 where the node is no sum, or its sizes are unknown."""
    shape = dims(node.operands[0]) if node.operands else ()
    if node.op is hlo.reduce:
        return prod(shape[d] for d in Reduce.of(node).dimensions if d < len(shape)) if shape and reduces(node, hlo.add) else 0
    if node.op is hlo.dot:
        return prod(shape[d] for d in Dot.of(node).lhs_contracting_dims if d < len(shape)) if shape else 0
    window, kernel = Convolution.of(node).window, dims(node.operands[1])
    features = Convolution.of(node).dim_labels.rhs_input
    return prod(window.size) * kernel[features] if window is not None and features < len(kernel) else 0


def _largest(node: Node) -> int:
    """The largest magnitude that the element type of a value allows, of the type before conversions to wider ones."""
    while (node.op in MOVES or node.op is hlo.convert) and node.operands:
        before = node.operands[0].type
        if not isinstance(before, TensorType) or not (before.dtype.is_integer or before.dtype.name == "pred"):
            break
        node = node.operands[0]
    return _magnitude(node.type) if isinstance(node.type, TensorType) else 0


def _magnitude(type: TensorType) -> int:
    """The largest magnitude of an element type: 1 of ``pred``, 128 of ``s8``, 255 of ``u8``."""
    if type.dtype.name == "pred":
        return 1
    return 1 << (type.dtype.bits - 1) if type.dtype.is_signed else (1 << type.dtype.bits) - 1


def _limit(type: TensorType) -> int:
    """The largest number of an integer type."""
    return (1 << (type.dtype.bits - type.dtype.is_signed)) - 1

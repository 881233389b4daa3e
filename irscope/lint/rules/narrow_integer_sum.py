"""DTY011: a sum of integers in a type that does not hold it."""
from __future__ import annotations

from itertools import product
from math import prod

from irscope.analysis.values import MOVES, dims, reduces
from irscope.graph import Node, TensorType
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Dot, Reduce

NARROW = 16
"""The largest width in bits of the sums that are checked: programs treat integers of 32 bits and more as unbounded."""


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
        Fixture.hlo("""
            ENTRY e {
              a = s8[8,1] parameter(0)
              z = s8[] constant(0)
              ROOT r = s8[8] reduce(a, z), dimensions={1}, to_apply=sum
            }

            sum {
              a = s8[] parameter(0)
              b = s8[] parameter(1)
              ROOT sum.r = s8[] add(a, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              a = s32[8,256] parameter(0)
              n = s8[8,256] convert(a)
              w = s16[8,256] convert(n)
              z = s16[] constant(0)
              ROOT r = s16[8] reduce(w, z), dimensions={1}, to_apply=sum
            }

            sum {
              a = s16[] parameter(0)
              b = s16[] parameter(1)
              ROOT sum.r = s16[] add(a, b)
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
            terms = terms_of(node) if node.op is not hlo.reduce or reduces(node, hlo.add) else 0
            low, high = _sums(node, terms)
            least, most = _range(type)
            if low < least or high > most:
                yield self.finding(
                    context, node,
                    f"{terms} terms are summed in {type.dtype.name}, which holds {least} to {most}: the operands allow {low} to {high}",
                    help="accumulate in s32 and convert the result",
                )


def terms_of(node: Node) -> int:
    """How many terms each result element of a dot, convolution or reduction combines; 0 if the sizes are unknown."""
    if node.op is hlo.convolution:
        window, kernel = Convolution.of(node).window, dims(node.operands[1])
        features = Convolution.of(node).dim_labels.rhs_input
        return prod(window.size) * kernel[features] if window is not None and features < len(kernel) else 0
    shape = dims(node.operands[0])
    along = Dot.of(node).lhs_contracting_dims if node.op is hlo.dot else Reduce.of(node).dimensions
    return prod(shape[d] for d in along if d < len(shape)) if shape else 0


def _sums(node: Node, terms: int) -> tuple[int, int]:
    """The least and the largest sum of terms that the types of the operands allow."""
    ranges = [_values(operand) for operand in (node.operands[:1] if node.op is hlo.reduce else node.operands[:2])]
    products = [prod(ends) for ends in product(*ranges)]
    return terms * min(products), terms * max(products)


def _values(node: Node) -> tuple[int, int]:
    """The least and the largest value that the element type allows, or where it was widened, the type before."""
    found = _range(node.type) if isinstance(node.type, TensorType) else (0, 0)
    while (node.op in MOVES or node.op is hlo.convert) and node.operands:
        before = node.operands[0].type
        if not isinstance(before, TensorType) or not (before.dtype.is_integer or before.dtype.name == "pred"):
            break
        least, most = _range(before)
        if least < found[0] or most > found[1]:
            break  # the conversion may wrap around
        node, found = node.operands[0], (least, most)
    return found


def _range(type: TensorType) -> tuple[int, int]:
    """The least and the largest number of an element type: 0 and 1 of ``pred``, -128 and 127 of ``s8``, 0 and 255 of ``u8``."""
    if type.dtype.name == "pred":
        return 0, 1
    size = 1 << (type.dtype.bits - type.dtype.is_signed)
    return (-size if type.dtype.is_signed else 0), size - 1

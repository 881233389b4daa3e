"""Operations of CHLO: those without an equivalent in HLO are composites; the ``broadcast_`` ones broadcast their operands first."""
from __future__ import annotations

from irscope.formats.stablehlo.building.contraction import DOT_DIMENSIONS, precision
from irscope.formats.stablehlo.building.movement import without_stretched
from irscope.formats.stablehlo.building.work import BUILDERS, Unsupported, Work, builds, declare, primitive
from irscope.formats.stablehlo.composites import bessel, error, gamma, simple
from irscope.formats.stablehlo.dialects import CHLO
from irscope.graph import Node, Op, TensorType
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attrs import Literal
from irscope.ops.faults import TypeFault

COMPOSITES: dict[str, Op] = {
    "erf_inv": error.ERF_INV, "erfc": error.ERFC, "lgamma": gamma.LGAMMA, "digamma": gamma.DIGAMMA, "polygamma": gamma.POLYGAMMA,
    "zeta": gamma.ZETA_OP, "bessel_i1e": bessel.BESSEL_I1E, "next_after": simple.NEXT_AFTER, "square": simple.SQUARE, "conj": simple.CONJ,
    "is_inf": simple.IS_INF, "is_pos_inf": simple.IS_POS_INF, "is_neg_inf": simple.IS_NEG_INF,
}
for _name, _op in COMPOSITES.items():
    primitive(f"chlo.{_name}", _op)
BROADCASTING = tuple(name for name in CHLO if name.startswith("broadcast_"))
"""Operations that broadcast their operands first."""


def _broadcasting(name: str) -> None:
    target = name.removeprefix("broadcast_")
    known = f"chlo.{target}" if target in COMPOSITES else f"stablehlo.{target}"

    def build(work: Work) -> None:
        dimensions = work.fields.ints("broadcast_dimensions", ()) if "broadcast_dimensions" in work.fields else None
        shape = work.result_array()
        if not shape.is_static:
            raise Unsupported(f"'{work.operation.name}' broadcasts to sizes that are not known", "use the operations of StableHLO")
        work.operands = [_broadcast(work, x, shape, dimensions) for x in work.operands]
        BUILDERS[known](work)
    declare(f"chlo.{name}", build)


def _broadcast(work: Work, x: Node, result: TensorType, dimensions: tuple[int, ...] | None) -> Node:
    """An operand broadcast to the shape of the result, aligned at the last dimension where no dimensions are given."""
    operand = x.type
    if not isinstance(operand, TensorType):
        raise TypeFault(f"'{work.operation.name}' op takes arrays, but got {operand}")
    if operand.shape == result.shape:
        return x
    lead = result.rank - operand.rank
    to = dimensions if dimensions is not None and len(dimensions) == operand.rank else tuple(range(lead, result.rank))
    if lead < 0 or len(to) != operand.rank or any(d not in range(result.rank) or operand.shape[i] not in (1, result.shape[d])
                                                  for i, d in enumerate(to)):
        raise TypeFault(f"'{work.operation.name}' op cannot broadcast {operand} to {result}")
    kept, left = without_stretched(work, x, result, to)
    return work.step(hlo.broadcast, [kept], operand.with_shape(result.shape), {"dimensions": left})


for _name in BROADCASTING:
    _broadcasting(_name)


@builds("chlo.constant_like")
def _constant_like(work: Work) -> None:
    value = work.fields.values.get("value")
    number = getattr(value, "value", None)
    if not isinstance(number, int | float):
        raise work.fields.fault("value", "a number")
    result = work.result_array()
    scalar = TensorType(result.dtype, ())
    literal = Literal.of(np.asarray(number).astype(result.dtype.numpy()), scalar)
    one = work.step(hlo.constant, (), scalar, {"literal": literal})
    work.emit(hlo.broadcast, {"dimensions": ()}, [one])


@builds("chlo.ragged_dot")
def _ragged_dot(work: Work) -> None:
    work.count(3)
    numbers = work.fields.record("ragged_dot_dimension_numbers")
    names = {**DOT_DIMENSIONS, "lhs_ragged_dims": "lhs_ragged_dimensions", "rhs_group_dims": "rhs_group_dimensions"}
    dims = {name: numbers.ints(written, ()) for name, written in names.items()}
    work.emit(hlo.ragged_dot, {**{name: given for name, given in dims.items() if given}, **precision(work.fields)})


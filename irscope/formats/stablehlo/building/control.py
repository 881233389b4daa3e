"""Operations that call other computations: loops, branches, functions; tuples and barriers."""
from __future__ import annotations

from irscope.formats.stablehlo.building.elementwise import check_same
from irscope.formats.stablehlo.building.text import dictionary_text, text_of
from irscope.formats.stablehlo.building.work import Work, builds, declare, primitive
from irscope.graph.dtypes import PRED, S32
from irscope.ops import hlo
from irscope.ops.faults import TypeFault
from irscope.ops.infer import plain


@builds("while")
def _while(work: Work) -> None:
    work.count_results(len(work.operands))
    state = [*work.operands, *work.captured]
    whole = work.scope.together(state)
    node = work.add(hlo.while_, [whole], {}, work.bodies, whole.type)
    if len(state) == 1:
        work.give(*[node] * len(work.types))
    else:
        work.give(*[work.scope.part(node, i, result.name) for i, result in enumerate(work.operation.results)])


@builds("case if")
def _case(work: Work) -> None:
    work.count(1)
    chooser = work.array()
    if chooser.rank or chooser.dtype not in (PRED, S32):
        raise TypeFault(f"the operand of '{work.operation.name}' must be a scalar of i1 or i32, but is {plain(chooser)}")
    if chooser.dtype is PRED and len(work.bodies) != 2:
        raise TypeFault(f"'{work.operation.name}' op needs two regions, but has {len(work.bodies)}")
    operand = work.scope.together(work.captured)
    work.emit(hlo.conditional, {}, [work.operands[0], *[operand] * len(work.bodies)], work.bodies)


declare("func.call", lambda work: work.emit(hlo.call, {}, None, [work.program.callee(work.fields.symbol("callee"))]))
primitive("tuple", hlo.tuple)
primitive("get_tuple_element", hlo.get_tuple_element, lambda fields: {"index": fields.integer("index")})


@builds("composite")
def _composite(work: Work) -> None:
    """A call of the decomposition, which keeps the name of the composite."""
    fields = work.fields
    name, version = fields.text("name"), fields.integer("version", 0)
    node = work.emit(hlo.call, {"is_composite": True}, None, [work.program.callee(fields.symbol("decomposition"))])
    attributes = fields.values.get("composite_attributes", {})
    shown = dictionary_text(attributes) if isinstance(attributes, dict) else text_of(attributes)
    work.program.keep(node, {"frontend_attributes":
                             f'{{composite.attributes={shown},composite.name="{name}",composite.version="{version}"}}'})


@builds("optimization_barrier")
def _optimization_barrier(work: Work) -> None:
    work.count_results(len(work.operands))
    for operand, type in zip(work.operands, work.types, strict=True):
        check_same(work, operand, type)
    whole = work.scope.together(work.operands)
    work.give_parts(work.add(hlo.opt_barrier, [whole], type=whole.type))

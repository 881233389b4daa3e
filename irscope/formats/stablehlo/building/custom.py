"""Custom calls, with the attributes that XLA gives them, and annotations of shardings."""
from __future__ import annotations

from typing import Any

from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.text import dictionary_text, text_of
from irscope.formats.stablehlo.building.work import Work, builds
from irscope.graph import Layout, TensorType, Type
from irscope.ops import hlo
from irscope.ops.faults import TypeFault

VERSIONS = {2: "API_VERSION_STATUS_RETURNING", 3: "API_VERSION_STATUS_RETURNING_UNIFIED", 4: "API_VERSION_TYPED_FFI"}
CONFIGS = ("mhlo.backend_config", "backend_config")


@builds("custom_call")
def _custom_call(work: Work) -> None:
    fields = work.fields
    attrs: dict[str, Any] = {"custom_call_target": fields.text("call_target_name")}
    if "operand_layouts" in fields:
        attrs["operand_layout_constraints"] = _constrained(work, fields)
    if fields.flag("has_side_effect"):
        attrs["custom_call_has_side_effect"] = True
    if aliases := fields.records("output_operand_aliases"):
        attrs["output_to_operand_aliasing"] = tuple(map(_alias, aliases))
    version = fields.integer("api_version", 1)
    if version == 1 and fields.values.get(CONFIGS[0]) and not fields.values.get(CONFIGS[1]):
        version = 4  # jax writes the configuration of a typed call so, and jaxlib restores it
    if version in VERSIONS:
        attrs["api_version"] = VERSIONS[version]
    bodies = [work.program.callee(name) for name in fields.symbols("called_computations")]
    node = work.emit(hlo.custom_call, attrs, None, bodies)
    for name in CONFIGS:
        config = fields.values.get(name)
        if config:
            text = config if isinstance(config, str) else dictionary_text(config) if isinstance(config, dict) else text_of(config)
            work.program.keep(node, {"backend_config": text})
            break


def _alias(alias: Fields) -> tuple[tuple[int, ...], tuple[int, tuple[int, ...]]]:
    output, operand = alias.ints("output_tuple_indices", ()), alias.ints("operand_tuple_indices", ())
    return output, (alias.integer("operand_index", 0), operand)


def _constrained(work: Work, fields: Fields) -> tuple[Type, ...]:
    """The types of the operands with the layouts that the call states."""
    orders = fields.values["operand_layouts"]
    if not isinstance(orders, tuple) or len(orders) != len(work.operands):
        raise TypeFault(f"operand_layouts of '{work.operation.name}' must have a layout for each operand")
    types: list[Type] = []
    for operand, order in zip(work.operands, orders, strict=True):
        type = operand.type
        if isinstance(type, TensorType):
            type = TensorType(type.dtype, type.shape, Layout(Fields(work.operation.name, {"layout": order}).ints("layout")))
        types.append(type)
    return tuple(types)


@builds("sdy.sharding_constraint")
def _sharding_constraint(work: Work) -> None:
    work.count(1)
    node = work.emit(hlo.custom_call, {"custom_call_target": "xla.sdy.Sharding"})
    sharding = work.fields.values.get("sharding")
    if sharding is not None:
        work.program.keep(node, {"frontend_attributes": f'{{xla.sdy.sharding="{text_of(sharding)}"}}'})

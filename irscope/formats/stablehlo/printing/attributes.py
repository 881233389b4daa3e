"""The attributes of primitives as StableHLO's operations have them."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from irscope.formats.hlo.devices import ReplicaGroups
from irscope.formats.stablehlo.building.movement import PADDING, RANGES
from irscope.formats.stablehlo.composites import dynamic
from irscope.formats.stablehlo.spelling import bracketed, flag, flags, integer, ints, quoted, record, symbol, table, word
from irscope.graph import Node, Op, TensorType
from irscope.ops import attributes, hlo
from irscope.ops.attrs import Window
from irscope.ops.faults import TypeFault

Texts = dict[str, str]
ALGORITHM = re.compile(r"dot_(any_f8|[a-z0-9]+?)_(any_f8|[a-z0-9]+?)_([a-z0-9]+?)(?:_x(\d+))?(_fast_accum)?")
GENERATORS = {"rng_default": "DEFAULT", "rng_three_fry": "THREE_FRY", "rng_philox": "PHILOX"}


def _compare(node: Node) -> Texts:
    operand = node.operands[0].type
    dtype = operand.dtype if isinstance(operand, TensorType) else None
    kind = "FLOAT" if dtype is None or dtype.is_float or dtype.is_complex else "SIGNED" if dtype.kind == "int" else "UNSIGNED"
    given = attributes.Compare.of(node)
    return {"comparison_direction": word("comparison_direction", given.direction),
            "compare_type": word("comparison_type", given.type or kind)}


def _accuracy(node: Node) -> Texts:
    given = attributes.Elementwise.of(node).result_accuracy
    if given.mode == "default":
        return {}
    fields = [(name, f"{value:.16e}") for name, value in (("atol", given.atol), ("rtol", given.rtol)) if value]
    fields += [("ulps", str(given.ulps))] if given.ulps else []
    return {"result_accuracy": record("result_accuracy", [*fields, ("mode", f"#stablehlo.result_accuracy_mode<{given.mode.upper()}>")])}


def _precision(words: Iterable[str]) -> Texts:
    listed = [word("precision", each.upper()) for each in words]
    return {"precision_config": bracketed(listed)} if listed else {}


def _dot(node: Node) -> Texts:
    given = attributes.Dot.of(node)
    fields = (("lhs_batching_dimensions", given.lhs_batch_dims), ("rhs_batching_dimensions", given.rhs_batch_dims),
              ("lhs_contracting_dimensions", given.lhs_contracting_dims), ("rhs_contracting_dimensions", given.rhs_contracting_dims))
    found = {"dot_dimension_numbers": record("dot", fields), **_precision(given.operand_precision)}
    m = ALGORITHM.fullmatch(given.algorithm)
    if given.algorithm:
        if m is None:
            raise TypeFault(f"the algorithm {given.algorithm} has no text in StableHLO")
        found["algorithm"] = _algorithm(m)
    return found


def _algorithm(m: re.Match[str]) -> str:
    names = ["f8E5M2" if part == "any_f8" else part for part in m.groups()[:3]]
    products = int(m[4] or 1)
    parts = 1  # in every algorithm that StableHLO knows, also in bf16_bf16_f32_x9
    return record("dot_algorithm", (("lhs_precision_type", names[0]), ("rhs_precision_type", names[1]), ("accumulation_type", names[2]),
                                    ("lhs_component_count", parts), ("rhs_component_count", parts), ("num_primitive_operations", products),
                                    ("allow_imprecise_accumulation", flag(m[5] is not None))))


def _convolution(node: Node) -> Texts:
    given = attributes.Convolution.of(node)
    dims = str(given.dim_labels)
    lhs, _, rest = dims.partition("_")
    rhs, _, out = rest.partition("->")
    labels = f"[{', '.join(lhs)}]x[{', '.join(rhs)}]->[{', '.join(out)}]"
    found = {"dimension_numbers": f"#stablehlo.conv<{labels}>", "feature_group_count": integer(given.feature_group_count),
             "batch_group_count": integer(given.batch_group_count), **_precision(given.operand_precision)}
    window = given.window
    if window is not None:
        found |= {"window_strides": ints(window.stride), "padding": _padding(window), "lhs_dilation": ints(window.lhs_dilate),
                  "rhs_dilation": ints(window.rhs_dilate), "window_reversal": flags(window.rhs_reversal)}
    return found


def _padding(window: Window) -> str:
    return table(list(zip(window.pad_low, window.pad_high, strict=True)))


def _windowed(node: Node) -> Texts:
    window = attributes.ReduceWindow.of(node).window
    if any(window.rhs_reversal):
        raise TypeFault("a reversed window has no text in StableHLO")
    found = {"window_dimensions": ints(window.size), "window_strides": ints(window.stride), "padding": _padding(window)}
    if set(window.lhs_dilate + window.rhs_dilate) - {1}:
        found |= {"base_dilations": ints(window.lhs_dilate), "window_dilations": ints(window.rhs_dilate)}
    return found


def _gather(node: Node) -> Texts:
    given = attributes.Gather.of(node)
    fields = (("offset_dims", given.offset_dims), ("collapsed_slice_dims", given.collapsed_slice_dims),
              ("operand_batching_dims", given.operand_batching_dims), ("start_indices_batching_dims", given.start_indices_batching_dims),
              ("start_index_map", given.start_index_map), ("index_vector_dim", given.index_vector_dim))
    sizes = {"slice_sizes": ints(given.slice_sizes)} if node.op is hlo.gather else {}
    return {"dimension_numbers": record("gather", fields), **sizes, "indices_are_sorted": flag(given.indices_are_sorted)}


def _scatter(node: Node) -> Texts:
    given = attributes.Scatter.of(node)
    fields = (("update_window_dims", given.update_window_dims), ("inserted_window_dims", given.inserted_window_dims),
              ("input_batching_dims", given.input_batching_dims), ("scatter_indices_batching_dims", given.scatter_indices_batching_dims),
              ("scatter_dims_to_operand_dims", given.scatter_dims_to_operand_dims), ("index_vector_dim", given.index_vector_dim))
    return {"scatter_dimension_numbers": record("scatter", fields), "indices_are_sorted": flag(given.indices_are_sorted),
            "unique_indices": flag(given.unique_indices)}


def _columns(names: Sequence[str], rows: Sequence[Sequence[int]]) -> Texts:
    """The columns of an attribute that has a row of three numbers for each dimension, by their names."""
    return {name: ints(column) for name, column in zip(names, zip(*rows, strict=True) if rows else ((), (), ()), strict=True)}


def _groups(node: Node) -> Texts:
    given = attributes.Collective.of(node)
    groups = given.replica_groups
    listed = groups.groups() if isinstance(groups, ReplicaGroups) else tuple(groups)
    found = {"replica_groups": table(listed, 0)}
    if given.channel_id is not None:
        found["channel_handle"] = _channel(given.channel_id)
    if given.use_global_device_ids:
        found["use_global_device_ids"] = "unit"
    return found


def _channel(handle: int, type: int = 1) -> str:
    return record("channel_handle", (("handle", handle), ("type", type)))


def _all_to_all(node: Node) -> Texts:
    given, groups = attributes.Collective.of(node), attributes.Collective.of(node).replica_groups
    found = _groups(node)
    if given.dimensions:
        listed = groups.groups() if isinstance(groups, ReplicaGroups) else tuple(groups)
        axis, count = given.dimensions[0], max(1, len(listed[0])) if listed else 1
        found |= {"split_dimension": integer(axis), "concat_dimension": integer(axis), "split_count": integer(count)}
    return found


def _permute(node: Node) -> Texts:
    given = attributes.Collective.of(node)
    found = {"source_target_pairs": table(given.source_target_pairs)}
    return found if given.channel_id is None else {**found, "channel_handle": _channel(given.channel_id)}


def transfer(node: Node) -> Texts:
    """The attributes of a send or a receive; channels to the host have types of their own, 2 and 3."""
    given = attributes.Transfer.of(node)
    type = 1 if not given.is_host_transfer else 2 if node.op is hlo.send_done else 3
    return {"channel_handle": _channel(given.channel_id or 0, type), "is_host_transfer": flag(given.is_host_transfer)}


def custom_call(node: Node, config: str) -> Texts:
    """The attributes of a custom call; ``config`` is its backend configuration as text."""
    given = attributes.CustomCall.of(node)
    version = {"API_VERSION_STATUS_RETURNING": 2, "API_VERSION_STATUS_RETURNING_UNIFIED": 3, "API_VERSION_TYPED_FFI": 4}
    number = version.get(str(node.attrs.get("api_version", "")), 1)
    found = {"call_target_name": quoted(given.custom_call_target), "api_version": integer(number, "i32")}
    if given.custom_call_has_side_effect:
        found["has_side_effect"] = "true"
    if config:
        found["backend_config"] = config if number == 4 and config.startswith("{") else quoted(config)
    constraints = given.operand_layout_constraints
    if constraints:
        found["operand_layouts"] = bracketed(_layout(type) for type in constraints)
        leaves = list(node.type.leaves())
        found["result_layouts"] = bracketed(_layout(type) for type in leaves)
    if given.output_to_operand_aliasing:
        found["output_operand_aliases"] = bracketed(
            "#stablehlo.output_operand_alias<output_tuple_indices = " + bracketed(output) + f", operand_index = {operand}, "
            f"operand_tuple_indices = {bracketed(inner)}>" for output, (operand, inner) in given.output_to_operand_aliasing)
    if node.bodies:
        found["called_computations"] = bracketed(symbol(body.name) for body in node.bodies)
    return found


def _layout(type: object) -> str:
    rank = type.rank if isinstance(type, TensorType) else 0
    layout = type.layout if isinstance(type, TensorType) else None
    order = layout.minor_to_major if layout is not None else tuple(range(rank - 1, -1, -1))
    return f"dense<{bracketed(order) if order else ''}> : tensor<{len(order)}xindex>"


def _triangular(node: Node) -> Texts:
    given = attributes.TriangularSolve.of(node)
    return {"left_side": flag(given.left_side), "lower": flag(given.lower), "unit_diagonal": flag(given.unit_diagonal),
            "transpose_a": word("transpose", given.transpose_a)}


def _batch_norm(node: Node) -> Texts:
    given = attributes.BatchNorm.of(node)
    return {"epsilon": f"{given.epsilon:.8e} : f32", "feature_index": integer(given.feature_index)}


def _top_k(node: Node) -> Texts:
    given = attributes.TopK.of(node)
    return {"k": integer(given.k), **({} if given.largest else {"largest": "false"})}


def _config(name: str) -> Callable[[Node], Texts]:
    return lambda node: {name: quoted(str(node.attrs.get(name, "")))}


SPELLERS: dict[Op, Callable[[Node], Texts]] = {
    hlo.compare: _compare, hlo.dot: _dot, hlo.convolution: _convolution, hlo.reduce_window: _windowed, hlo.select_and_scatter: _windowed,
    hlo.gather: _gather, hlo.scatter: _scatter, hlo.all_reduce: _groups, hlo.all_to_all: _all_to_all,
    hlo.collective_broadcast: _groups, hlo.collective_permute: _permute, hlo.triangular_solve: _triangular,
    hlo.batch_norm_training: _batch_norm, hlo.batch_norm_inference: _batch_norm, hlo.batch_norm_grad: _batch_norm, hlo.topk: _top_k,
    dynamic.GATHER: _gather, dynamic.CONVOLUTION: _convolution,
    **dict.fromkeys(hlo.named("cbrt cosine exponential exponential-minus-one log log-plus-one logistic rsqrt sine sqrt tan tanh"),
                    _accuracy),
    hlo.infeed: _config("infeed_config"), hlo.outfeed: _config("outfeed_config"),
    **dict.fromkeys((hlo.broadcast, dynamic.BROADCAST), lambda node: {
        "broadcast_dimensions": ints(attributes.Broadcast.of(node).dimensions)}),
    hlo.slice: lambda node: _columns(RANGES, attributes.Slice.of(node).slice),
    hlo.pad: lambda node: _columns(PADDING, attributes.Pad.of(node).padding),
    hlo.transpose: lambda node: {"permutation": ints(attributes.Transpose.of(node).dimensions)},
    hlo.reverse: lambda node: {"dimensions": ints(attributes.Reverse.of(node).dimensions)},
    hlo.concatenate: lambda node: {"dimension": integer(attributes.Concatenate.of(node).axis)},
    hlo.reduce: lambda node: {"dimensions": ints(attributes.Reduce.of(node).dimensions)},
    hlo.map: lambda node: {"dimensions": ints(attributes.Map.of(node).dimensions)},
    hlo.sort: lambda node: {"dimension": integer(attributes.Sort.of(node).axis), "is_stable": flag(attributes.Sort.of(node).is_stable)},
    **dict.fromkeys((hlo.iota, dynamic.IOTA), lambda node: {"iota_dimension": integer(attributes.Iota.of(node).iota_dimension)}),
    hlo.dynamic_slice: lambda node: {"slice_sizes": ints(attributes.DynamicSlice.of(node).dynamic_slice_sizes)},
    hlo.get_dimension_size: lambda node: {"dimension": integer(attributes.DimensionSize.of(node).axis)},
    hlo.set_dimension_size: lambda node: {"dimension": integer(attributes.DimensionSize.of(node).axis)},
    hlo.fft: lambda node: {"fft_type": word("fft_type", attributes.Fft.of(node).fft_type),
                           "fft_length": ints(attributes.Fft.of(node).fft_length)},
    hlo.cholesky: lambda node: {"lower": flag(attributes.Cholesky.of(node).lower)},
    hlo.reduce_precision: lambda node: {"exponent_bits": integer(attributes.ReducePrecision.of(node).exponent_bits, "i32"),
                                        "mantissa_bits": integer(attributes.ReducePrecision.of(node).mantissa_bits, "i32")},
    hlo.rng_bit_generator: lambda node: {"rng_algorithm": word("rng_algorithm", GENERATORS[attributes.Random.of(node).algorithm])},
    hlo.rng: lambda node: {
        "rng_distribution": word("rng_distribution", attributes.Random.of(node).distribution.removeprefix("rng_").upper())},
    hlo.all_gather: lambda node: {"all_gather_dim": integer(attributes.Collective.of(node).dimensions[0]), **_groups(node)},
    hlo.reduce_scatter: lambda node: {"scatter_dimension": integer(attributes.Collective.of(node).dimensions[0]), **_groups(node)},
}
"""How the attributes of an operator are written; operators that are not here have none."""

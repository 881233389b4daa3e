"""The attributes of an instruction as HLO text, from the fields of its proto: by the kind of the attribute, else by its name.

Which attributes an opcode has, and which of them it must have, is in the grammar of HLO (``formats/hlo/opcodes.py``).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import c_float
from typing import NamedTuple

from irscope.formats.hlo.spelling import braced, ints_text, quoted, spell
from irscope.formats.hlo_pb.devices import groups_text, sharding_text
from irscope.formats.hlo_pb.record import Record
from irscope.formats.hlo_pb.shapes import shape_text

FLOATS = ("F", "B", "C")
"""The first letters of the element types that a comparison orders as floats by default."""


class Instruction(NamedTuple):
    """An instruction, the types of its operands, and the names of the computations that it calls."""

    record: Record
    operand_types: tuple[str, ...]
    called: tuple[str, ...]


Writer = Callable[[Instruction], str | None]
KEPT = ("dimensions", "lhs_contracting_dims", "rhs_contracting_dims", "replica_groups", "window", "operand_layout_constraints")
"""Attributes that are written even where they have no elements."""


def attribute(name: str, kind: str, instruction: Instruction, required: bool) -> str | None:
    """The value of an attribute as text; None where the proto has the default, which text leaves out."""
    writer = BY_KIND.get(kind) or BY_NAME.get(name)
    found = writer(instruction) if writer is not None else _plain(name, kind, instruction.record, required)
    return None if found in (None, "", "{}") and not required and name not in KEPT else found


def _plain(name: str, kind: str, record: Record, required: bool) -> str | None:
    """The text of the field with the name of the attribute; the field of ``index`` is ``tuple_index``."""
    field = "tuple_index" if name == "index" else name
    if field not in record.message.names or not (required or kind == "float" or field in record.values):
        return None
    if kind == "bool":
        return "true" if record.flag(field) else None
    if kind == "ints":
        numbers = record.numbers(field)
        return ints_text(numbers) if numbers or required else None
    if kind == "string":
        text = record.text(field)
        return quoted(text) if text or required else None
    if kind == "float":
        return _float32(record.real(field))
    number = record.number(field)
    return str(number) if required or number else None


def _float32(value: float) -> str:
    """The shortest digits that give a float of 32 bits; infinite where a text has a larger number, and where rounded digits are larger."""
    value = c_float(value).value
    bits = bytes(c_float(value))
    return next((text for digits in range(1, 9) if bytes(c_float(float(text := f"{value:.{digits}g}"))) == bits), f"{value:.9g}")


def _within(holder: str, field: str) -> Writer:
    """A list of numbers in a message of the instruction."""
    return lambda one: ints_text(one.record.record(holder).numbers(field)) if one.record.has(holder) else None


def _dimensions(one: Instruction) -> str | None:
    numbers = one.record.numbers("dimensions")
    optional = one.record.text("opcode") in ("all-to-all", "ragged-all-to-all")
    return None if optional and not numbers else ints_text(numbers)


def _first_dimension(one: Instruction) -> str | None:
    numbers = one.record.numbers("dimensions")
    return str(numbers[0]) if numbers else None


def _window(one: Instruction) -> str | None:
    dims = one.record.record("window").records("dimensions")
    if not dims:
        return "{}" if one.record.has("window") and one.record.text("opcode") == "custom-call" else None
    parts = ["size=" + "x".join(str(d.number("size")) for d in dims)]
    pads = [(d.number("padding_low"), d.number("padding_high")) for d in dims]
    for name, values, plain in (
        ("stride", [d.number("stride") for d in dims], (0, 1)),
        ("pad", [f"{low}_{high}" for low, high in pads], ("0_0",)),
        ("lhs_dilate", [d.number("base_dilation") for d in dims], (0, 1)),
        ("rhs_dilate", [d.number("window_dilation") for d in dims], (0, 1)),
        ("rhs_reversal", [d.number("window_reversal") for d in dims], (0,)),
    ):
        if any(value not in plain for value in values):
            parts.append(f"{name}={'x'.join(map(str, values))}")
    return "{" + " ".join(parts) + "}"


def _dim_labels(one: Instruction) -> str | None:
    if not one.record.has("convolution_dimension_numbers"):
        return None
    dims = one.record.record("convolution_dimension_numbers")
    return (f"{_labels(dims, 'input', 'batch', 'feature', 'bf')}_{_labels(dims, 'kernel', 'input_feature', 'output_feature', 'io')}"
            f"->{_labels(dims, 'output', 'batch', 'feature', 'bf')}")


def _labels(dims: Record, side: str, first: str, second: str, letters: str) -> str:
    """``b01f``: which dimension is what."""
    spatial = dims.numbers(f"{side}_spatial_dimensions")
    kind = "_dimension"
    places = {dims.number(f"{side}_{first}{kind}"): letters[0], dims.number(f"{side}_{second}{kind}"): letters[1]}
    places |= {place: str(i) for i, place in enumerate(spatial)}
    return "".join(places.get(i, "?") for i in range(len(spatial) + 2))


def _precisions(one: Instruction) -> str | None:
    words = [word.lower() for word in one.record.record("precision_config").words("operand_precision")]
    return braced(words) if any(word != "default" for word in words) else None


def _algorithm(one: Instruction) -> str | None:
    word = one.record.record("precision_config").word("algorithm")
    return None if word == "ALG_UNSET" else word.removeprefix("ALG_").lower()


def _slices(one: Instruction) -> str | None:
    ranges = one.record.records("slice_dimensions")
    texts = [":".join(map(str, (r.number("start"), r.number("limit"), *((stride,) if (stride := r.number("stride")) > 1 else ()))))
             for r in ranges]
    return braced((f"[{text}]" for text in texts), ", ")


def _padding(one: Instruction) -> str | None:
    dims = one.record.record("padding_config").records("dimensions")
    rows = [(d.number("edge_padding_low"), d.number("edge_padding_high"), d.number("interior_padding")) for d in dims]
    interior = any(row[2] for row in rows)
    return "x".join("_".join(map(str, row if interior else row[:2])) for row in rows)


def _pairs(one: Instruction) -> str | None:
    return spell("intlists", ((p.number("source"), p.number("target")) for p in one.record.records("source_target_pairs")))


def _aliasing(one: Instruction) -> str | None:
    return spell("aliasing", [(alias.numbers("output_shape_index"), (alias.number("operand_index"), alias.numbers("operand_shape_index")))
                              for alias in one.record.records("output_operand_aliasing")])


def _comparison(one: Instruction) -> str | None:
    """The order of a comparison, where it is not the default for the type of the operands."""
    word = one.record.text("comparison_type")
    kind = one.operand_types[0] if one.operand_types else ""
    default = "FLOAT" if kind.startswith(FLOATS) else "SIGNED" if kind.startswith("S") else "UNSIGNED"
    return word if word and word != default else None


def _accuracy(one: Instruction) -> str | None:
    accuracy = one.record.record("result_accuracy")
    if accuracy.has("tolerance"):
        t = accuracy.record("tolerance")
        return f"{{tolerance={{atol={t.real('atol')!r},rtol={t.real('rtol')!r},ulps={t.number('ulps')}}}}}"
    return f"{{mode={accuracy.word('mode').lower()}}}" if accuracy.number("mode") else None


def _group_count(name: str) -> Writer:
    return lambda one: str(count) if (count := one.record.number(name)) > 1 else None


def _layouts(one: Instruction) -> str | None:
    shapes = one.record.records("operand_shapes_with_layout")
    return braced(map(shape_text, shapes), ", ") if one.record.flag("constrain_layout") else None


def _word_unless(name: str, *plain: str) -> Writer:
    """The word of an enum, where it is not a default."""
    return lambda one: word if (word := one.record.word(name)) not in plain else None


def _flag_within(name: str) -> Writer:
    """A flag of the options of a Cholesky decomposition or a triangular system, whichever the instruction has."""
    def written(one: Instruction) -> str | None:
        options = one.record.record("cholesky_options" if one.record.text("opcode") == "cholesky" else "triangular_solve_options")
        return "true" if options.flag(name) else None
    return written


def _called(place: int) -> Writer:
    """The name of the called computation at a place."""
    return lambda one: "%" + one.called[place] if place < len(one.called) else None


def _first_of_branch(place: int) -> Writer:
    """A branch of a conditional on a bool."""
    return lambda one: "%" + one.called[place] if one.operand_types[:1] == ("PRED",) and place < len(one.called) else None


def _branches(one: Instruction) -> str | None:
    if one.record.text("opcode") == "conditional" and one.operand_types[:1] == ("PRED",):
        return None
    return braced(("%" + name for name in one.called), ", ") if one.called else None


def _domain(one: Instruction) -> str | None:
    # The fields have the sides of the operand and of the user; the text has those of the domain.
    leave, entry = (sharding_text(one.record.record(f"domain_{side}_sharding")) for side in ("entry", "exit"))
    return f'{{kind="sharding", entry={entry}, exit={leave}}}'


def _slice_sizes(one: Instruction) -> str | None:
    """The sizes of the slices that a gather takes or a collective-permute moves; the latter has one list, which is cut by the rank."""
    if one.record.text("opcode") == "gather":
        return ints_text(one.record.numbers("gather_slice_sizes"))
    shape = one.record.record("shape")
    while shape.records("tuple_shapes"):
        shape = shape.records("tuple_shapes")[0]
    rank, numbers = len(shape.numbers("dimensions")), one.record.numbers("dynamic_slice_sizes")
    return braced(ints_text(numbers[i:i + rank]) for i in range(0, len(numbers), rank)) if rank and numbers else None


def _tri_state(one: Instruction) -> str | None:
    return {"TRI_STATE_TRUE": "true", "TRI_STATE_FALSE": "false"}.get(one.record.word("is_associative"))


def _ragged(field: str) -> Writer:
    """Dimensions of a product: those of a ragged one are within its own message."""
    def written(one: Instruction) -> str | None:
        ragged = one.record.record("ragged_dot_dimension_numbers")
        holder = ragged.record("dot_dimension_numbers") if one.record.has("ragged_dot_dimension_numbers") \
            else one.record.record("dot_dimension_numbers")
        return ints_text(holder.numbers(field))
    return written


def _sparsity(one: Instruction) -> str | None:
    config = one.record.record("sparsity_config")
    sides = []
    for side in ("lhs", "rhs"):
        if config.has(side):
            pairs = (f"{name}={config.record(side).number(name)}" for name in ("num_non_zero", "block_size", "dimension", "stride"))
            sides.append(f"{side}={braced(pairs, ' ')}")
    return braced(sides, " ") if sides else None


def _convolution_kind(one: Instruction) -> str | None:
    word = one.record.word("conv_kind")
    return word.removeprefix("CONVOLUTION_KIND_").lower() if one.record.number("conv_kind") else None


def _index_vector_dim(one: Instruction) -> str | None:
    holder = "scatter_dimension_numbers" if one.record.has("scatter_dimension_numbers") else "gather_dimension_numbers"
    return str(one.record.record(holder).number("index_vector_dim"))


BY_KIND: Mapping[str, Writer] = {
    "window": _window, "dim_labels": _dim_labels, "precisions": _precisions, "dot_algorithm": _algorithm, "slices": _slices,
    "padding": _padding, "aliasing": _aliasing, "groups": lambda one: groups_text(one.record), "comparison": _comparison,
    "result_accuracy": _accuracy, "types": _layouts, "domain": _domain, "computations": _branches,
    "direction": lambda one: one.record.text("comparison_direction"),
    "fusion": lambda one: one.record.text("fusion_kind") or None,
    "fft": lambda one: one.record.word("fft_type"),
    "distribution": lambda one: one.record.word("distribution").lower(),
    "generator": lambda one: one.record.word("rng_algorithm").lower(),
    "transpose": lambda one: one.record.record("triangular_solve_options").word("transpose_a"),
    "padding_type": _word_unless("padding_type", "PADDING_INVALID"),
    "schedule": _word_unless("custom_call_schedule", "SCHEDULE_NONE"),
    "api_version": _word_unless("custom_call_api_version", "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL"),
}
"""Attributes that are written by their kind."""
BY_NAME: Mapping[str, Writer] = {
    "dimensions": _dimensions, "iota_dimension": _first_dimension, "inferred_dimension": _first_dimension,
    "source_target_pairs": _pairs, "slice_sizes": _slice_sizes, "feature_group_count": _group_count("feature_group_count"),
    "batch_group_count": _group_count("batch_group_count"), "is_associative": _tri_state,
    "largest": lambda one: "true" if one.record.flag("largest") else "false",
    "lower": _flag_within("lower"), "left_side": _flag_within("left_side"), "unit_diagonal": _flag_within("unit_diagonal"),
    "to_apply": lambda one: None if one.record.text("opcode") == "custom-call" else _called(0)(one),
    "calls": _called(0), "body": _called(0), "condition": _called(1), "select": _called(0), "scatter": _called(1),
    "true_computation": _first_of_branch(0), "false_computation": _first_of_branch(1),
    "outfeed_shape": lambda one: shape_text(one.record.record("outfeed_shape")) if one.record.has("outfeed_shape") else None,
    "cross_program_prefetch_index": lambda one: str(one.record.number("cross_program_prefetch_index"))
    if one.record.has("cross_program_prefetch_index") else None,
    "convolution_kind": lambda one: None,
    "conv_kind": _convolution_kind,
    "sparsity_config": _sparsity,
    "lhs_ragged_dims": _within("ragged_dot_dimension_numbers", "lhs_ragged_dimensions"),
    "rhs_group_dims": _within("ragged_dot_dimension_numbers", "rhs_group_dimensions"),
    **{f"{side}_{kind}_dims": _ragged(f"{side}_{kind}_dimensions") for side in ("lhs", "rhs") for kind in ("contracting", "batch")},
    **{name: _within("gather_dimension_numbers", name) for name in
       ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims", "start_indices_batching_dims")},
    **{name: _within("scatter_dimension_numbers", name) for name in
       ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims",
        "scatter_indices_batching_dims")},
    "index_vector_dim": _index_vector_dim,
}
"""Attributes that are written by their name; the others are fields of the same name."""


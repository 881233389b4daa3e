"""The textual grammar of HLO's opcodes: the operand count of each, and its optional and required attributes."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irscope.ops.registry import lookup

# Attributes that any instruction may have. All but ``predecessors`` are checked and then left in the text (see provenance).
COMMON: dict[str, str] = {
    "sharding": "sharding",
    "frontend_attributes": "frontend",
    "statistics": "statistics",
    "parameter_replication": "bools",
    "control-predecessors": "predecessors",
    "origin": "origin",
    "original_value": "origin",
    "metadata": "metadata",
    "backend_config": "config",
    "outer_dimension_partitions": "ints",
}
RAW_KINDS = frozenset(("sharding", "frontend", "statistics", "bools", "origin", "metadata", "config"))
RAW_NAMES = frozenset(n for n, kind in COMMON.items() if kind in RAW_KINDS)

# The words of each kind of value.
WORDS: dict[str, frozenset[str]] = {kind: frozenset(words.split()) for kind, words in {
    "direction": "EQ NE GE GT LE LT",
    "comparison": "FLOAT TOTALORDER SIGNED UNSIGNED",
    "order": "TOTAL PARTIAL",
    "fft": "FFT IFFT RFFT IRFFT",
    "fusion": "kLoop kInput kOutput kCustom",
    "distribution": "rng_uniform rng_normal rng_bernoulli",
    "generator": "rng_default rng_three_fry rng_philox",
    "transpose": "NO_TRANSPOSE TRANSPOSE ADJOINT TRANSPOSE_INVALID",
    "padding_type": "PADDING_INVALID PADDING_VALID PADDING_SAME",
    "schedule": "SCHEDULE_NONE SCHEDULE_LATEST SCHEDULE_EARLIEST",
    "api_version": "API_VERSION_ORIGINAL API_VERSION_STATUS_RETURNING API_VERSION_STATUS_RETURNING_UNIFIED API_VERSION_TYPED_FFI",
    "convolution_kind": "fprop wgrad dgrad unset",
    "mode": "cross_replica cross_partition cross_replica_and_partition flattened_id",
    "precision": "default high highest packed_nibble",
    "accuracy": "default highest",
    "dot_algorithm":
        "unset dot_any_f8_any_f8_f32 dot_any_f8_any_f8_f32_fast_accum dot_any_f8_any_f8_any dot_any_f8_any_f8_any_fast_accum "
        "dot_f16_f16_f16 dot_f16_f16_f32 dot_bf16_bf16_bf16 dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3 dot_bf16_bf16_f32_x6 "
        "dot_bf16_bf16_f32_x9 dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 dot_f32_f32_f32 dot_f64_f64_f64",
}.items()}


@dataclass(frozen=True, slots=True)
class Opcode:
    """The grammar of one opcode.

    ``operands`` is their number, None where it varies; ``attributes`` maps each name to the kind of its value;
    ``infers``: the text may omit the result type; ``wraps`` is X for ``X-start``, ``X-update``, ``X-done``,
    which write ``async-*`` around a computation with one X.
    """

    name: str
    operands: int | None
    attributes: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    infers: bool = False
    wraps: str = ""

    def kind(self, attribute: str) -> str | None:
        """The kind of an attribute's value; None where the opcode does not have the attribute."""
        return self.attributes.get(attribute) or COMMON.get(attribute)


OPCODES: dict[str, Opcode] = {}


def _declare(names: str, operands: int | None, attributes: str = "", infers: bool = False) -> None:
    """``attributes`` is ``name:kind``, separated by blanks; ``!`` marks a required one."""
    parsed = dict(word.rstrip("!").split(":") for word in attributes.split())
    required = tuple(word.split(":")[0] for word in attributes.split() if word.endswith("!"))
    for name in names.split():
        OPCODES[name] = Opcode(name, operands, parsed, required, infers)


_declare("acos acosh asin asinh atanh exponential-minus-one log log-plus-one logistic sqrt cbrt rsqrt tanh erf sine sinh cosine cosh tan "
         "exponential", 1, "result_accuracy:result_accuracy", infers=True)
_declare(
    "abs round-nearest-afz round-nearest-even ceil count-leading-zeros copy opt-barrier imag is-finite floor not negate popcnt real sign",
    1,
    infers=True,
)
_declare("all-gather-done all-reduce-done bitcast collective-permute-done copy-done convert bitcast-convert", 1)
_declare("add divide multiply subtract atan2 complex maximum minimum power remainder and or xor shift-left shift-right-arithmetic "
         "shift-right-logical mulhi add-dependency", 2, infers=True)
_declare("stochastic-convert", 2)
_declare("clamp select", 3, infers=True)
_declare("parameter constant", 0)
_declare("replica-id partition-id", 0, infers=True)
_declare("iota", 0, "iota_dimension:int!")
_declare("after-all", None, infers=True)
_declare("dynamic-reshape", None)
_declare("tuple", None, infers=True)
_declare("topk", 1, "k:int! largest:bool is_stable:bool", infers=True)

_declare("all-gather all-gather-start", None,
         "dimensions:ints! replica_groups:groups channel_id:int constrain_layout:bool use_global_device_ids:bool")
_declare("all-reduce all-reduce-start", None,
         "to_apply:computation! replica_groups:groups channel_id:int constrain_layout:bool use_global_device_ids:bool mode:mode")
_declare("reduce-scatter", None, "to_apply:computation! dimensions:ints! replica_groups:groups channel_id:int constrain_layout:bool "
                                 "use_global_device_ids:bool mode:mode")
_declare("all-to-all", None, "dimensions:ints replica_groups:groups channel_id:int constrain_layout:bool")
_declare("ragged-all-to-all", None, "dimensions:ints replica_groups:groups channel_id:int")
_declare("collective-broadcast", None, "replica_groups:groups channel_id:int has_dynamic_root:bool")
_declare("collective-permute collective-permute-start", None, "source_target_pairs:intlists! channel_id:int slice_sizes:intlists")
_declare("async-start", None, "calls:computation! async_execution_thread:string output_to_operand_aliasing:aliasing")
_declare("async-update async-done", None, "calls:computation async_execution_thread:string")
_declare("copy-start", 1, "cross_program_prefetch_index:int32")
_declare("send", 2, "channel_id:int is_host_transfer:bool")
_declare("recv send-done recv-done", 1, "channel_id:int is_host_transfer:bool")

_declare("reshape", 1, "inferred_dimension:int")
_declare("broadcast", 1, "dimensions:ints", infers=True)
_declare("transpose reverse", 1, "dimensions:ints!", infers=True)
_declare("concatenate", None, "dimensions:ints!", infers=True)
_declare("get-dimension-size", 1, "dimensions:ints!", infers=True)
_declare("set-dimension-size", 2, "dimensions:ints!", infers=True)
_declare("slice", 1, "slice:slices!")
_declare("dynamic-slice", None, "dynamic_slice_sizes:ints!")
_declare("dynamic-update-slice", None)
_declare("pad", 2, "padding:padding!", infers=True)
_declare("get-tuple-element", 1, "index:int!", infers=True)
_declare("gather", 2, "offset_dims:ints! collapsed_slice_dims:ints! start_index_map:ints! index_vector_dim:int! slice_sizes:ints! "
                      "operand_batching_dims:ints start_indices_batching_dims:ints indices_are_sorted:bool", infers=True)
_declare("scatter", None, "update_window_dims:ints! inserted_window_dims:ints! scatter_dims_to_operand_dims:ints! index_vector_dim:int! "
                          "to_apply:computation! input_batching_dims:ints scatter_indices_batching_dims:ints indices_are_sorted:bool "
                          "unique_indices:bool", infers=True)

_DOT = "lhs_contracting_dims:ints rhs_contracting_dims:ints lhs_batch_dims:ints rhs_batch_dims:ints operand_precision:precisions "
_declare("dot", 2, _DOT + "algorithm:dot_algorithm", infers=True)
_declare("scaled-dot", 4, _DOT + "algorithm:dot_algorithm", infers=True)
_declare("ragged-dot", 3, _DOT + "lhs_ragged_dims:ints rhs_group_dims:ints", infers=True)
_declare("convolution", 2,
         "dim_labels:dim_labels! window:window feature_group_count:int batch_group_count:int operand_precision:precisions "
         "algorithm:dot_algorithm conv_kind:convolution_kind convolution_kind:convolution_kind sparsity_config:braces", infers=True)

_declare("reduce", None, "dimensions:ints! to_apply:computation!", infers=True)
_declare("reduce-window", None, "to_apply:computation! window:window", infers=True)
_declare("select-and-scatter", 3, "select:computation! scatter:computation! window:window", infers=True)
_declare("map", None, "to_apply:computation! dimensions:ints", infers=True)
_declare("sort", None, "dimensions:ints! to_apply:computation! is_stable:bool", infers=True)
_declare("scan", None, "to_apply:computation! dimensions:ints! num_carries:int! is_reverse:bool is_associative:bool", infers=True)
_declare("call", None, "to_apply:computation! is_composite:bool", infers=True)
_declare("while", 1, "condition:computation! body:computation!", infers=True)
_declare("conditional", None, "true_computation:computation false_computation:computation branch_computations:computations", infers=True)
_declare("fusion", None, "calls:computation! kind:fusion! output_to_operand_aliasing:aliasing")
_declare("custom-call", None,
         "custom_call_target:string! window:window dim_labels:dim_labels feature_group_count:int batch_group_count:int "
         "padding_type:padding_type literal:literal operand_precision:precisions operand_layout_constraints:types "
         "custom_call_has_side_effect:bool to_apply:computation called_computations:computations output_to_operand_aliasing:aliasing "
         "schedule:schedule api_version:api_version")

_declare("compare", 2, "direction:direction! type:comparison order:order", infers=True)
_declare("fft", 1, "fft_type:fft! fft_length:ints!", infers=True)
_declare("cholesky", 1, "lower:bool", infers=True)
_declare("triangular-solve", 2, "left_side:bool lower:bool unit_diagonal:bool transpose_a:transpose", infers=True)
_declare("batch-norm-training", 3, "epsilon:float! feature_index:int!", infers=True)
_declare("batch-norm-inference batch-norm-grad", 5, "epsilon:float! feature_index:int!", infers=True)
_declare("reduce-precision", 1, "exponent_bits:int! mantissa_bits:int!")
_declare("infeed", 1, "infeed_config:string")
_declare("outfeed", 2, "outfeed_config:string outfeed_shape:type")
_declare("rng", None, "distribution:distribution!")
_declare("rng-bit-generator", None, "algorithm:generator!")
_declare("rng-get-and-update-state", 0, "delta:int!")
_declare("domain", 1, "domain:domain!", infers=True)

# Attribute names of any opcode: on another opcode they are misplaced, not unknown.
KNOWN_ATTRIBUTES: frozenset[str] = frozenset(name for opcode in OPCODES.values() for name in opcode.attributes) | frozenset(COMMON)

_ASYNC_ATTRIBUTES = {"async_execution_thread": "string", "output_to_operand_aliasing": "aliasing"}
# all-gather-start and the like are opcodes themselves, so they have no sugared form; send and recv pair with send-done and recv-done.
_NO_SUGAR = frozenset(("all-gather", "all-reduce", "collective-permute", "copy", "send", "recv"))
_sugar: dict[str, Opcode] = {}
NO_OPCODES = frozenset(("atan",))
"""Primitives for which HLO has no opcode."""


def opcode_named(name: str) -> Opcode | None:
    """The grammar of an opcode, ``X-start``/``X-update``/``X-done`` included; None for one that HLO does not have."""
    known = OPCODES.get(name) or _sugar.get(name)
    if known is not None:
        return known
    wrapped, _, phase = name.rpartition("-")
    inner = OPCODES.get(wrapped)
    if inner is None or phase not in ("start", "update", "done") or wrapped in _NO_SUGAR:
        return _of_primitive(name)
    if phase == "start":
        made = Opcode("async-start", None, {**inner.attributes, **_ASYNC_ATTRIBUTES}, inner.required, False, wrapped)
    else:
        made = Opcode(f"async-{phase}", None, {"async_execution_thread": "string"}, (), False, wrapped)
    _sugar[name] = made
    return made


def _of_primitive(name: str) -> Opcode | None:
    """The grammar of a primitive that is declared in ``ops/`` and has no row above: any number of operands, no specific attributes."""
    primitive = lookup(name) if name not in NO_OPCODES else None
    if primitive is None:
        return None
    made = OPCODES[name] = Opcode(name, None, infers=primitive.infer is not None)
    return made

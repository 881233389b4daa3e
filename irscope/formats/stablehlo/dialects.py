"""The operations of the dialects that are closed sets, and the dialects whose operations are read without a declaration."""
from __future__ import annotations

STABLEHLO = frozenset(
    "abs add after_all all_gather all_reduce all_to_all and async_done async_start atan2 batch_norm_grad batch_norm_inference "
    "batch_norm_training bitcast_convert broadcast broadcast_in_dim case cbrt ceil cholesky clamp collective_broadcast "
    "collective_permute compare complex composite concatenate constant convert convolution cosine count_leading_zeros create_token "
    "cross-replica-sum custom_call divide dot dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad "
    "dynamic_reshape dynamic_slice dynamic_update_slice einsum exponential exponential_minus_one fft floor gather get_dimension_size "
    "get_tuple_element if imag infeed iota is_finite log log_plus_one logistic map maximum minimum multiply negate not "
    "optimization_barrier or outfeed pad partition_id popcnt power real real_dynamic_slice recv reduce reduce_precision reduce_scatter "
    "reduce_window remainder replica_id reshape return reverse rng rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter "
    "select select_and_scatter send set_dimension_size shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt "
    "subtract tan tanh torch_index_select trace transpose triangular_solve tuple unary_einsum uniform_dequantize uniform_quantize while "
    "xor collective_reduce".split())
CHLO = frozenset(
    "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e broadcast_add broadcast_and broadcast_atan2 broadcast_compare "
    "broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or "
    "broadcast_polygamma broadcast_power broadcast_remainder broadcast_select broadcast_shift_left broadcast_shift_right_arithmetic "
    "broadcast_shift_right_logical broadcast_subtract broadcast_xor broadcast_zeta conj constant constant_like cosh digamma "
    "dynamic_reshape erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma minimum_broadcast_shapes mulhi next_after polygamma ragged_dot "
    "scan sinh square tan top_k zeta".split())
MHLO = STABLEHLO | frozenset(
    "acos acosh add_dependency asin asinh async_update atanh bitcast copy cosh domain erf fusion minimum_broadcast_shapes mulhi "
    "ragged_dot scan sinh stochastic_convert topk xla.rng_get_and_update_state dynamic_reshape compute_reshape_shape "
    "cstr_reshapable".split())
SDY = frozenset(
    "all_gather all_reduce all_slice all_to_all collective_permute constant data_flow_edge func_data_flow_edge manual_computation mesh "
    "named_computation propagation_barrier reduce_scatter replicated_to_unreduced reshard return sharded_to_unreduced "
    "sharding_constraint sharding_group".split())
FUNC = frozenset("call call_indirect constant func return".split())

CLOSED: dict[str, frozenset[str]] = {"stablehlo": STABLEHLO, "chlo": CHLO, "mhlo": MHLO, "sdy": SDY, "func": FUNC}
"""The dialects whose operations irscope knows all of, as of jaxlib 0.12 and earlier releases."""
OPEN = frozenset("arith builtin cf math memref ml_program mpmd quant scf shape sparse_tensor tensor vector linalg affine index ub".split())
"""Dialects beside them in the texts of the frameworks: their operations are kept, opaque where irscope has no meaning for them."""
SHORT_NAMES = {"module": "builtin.module", "func": "func.func", "return": "func.return", "call": "func.call", "constant": "func.constant"}
"""What pretty forms write without a dialect."""
TERMINATORS = frozenset(("func.return", "stablehlo.return", "mhlo.return", "chlo.return", "sdy.return", "scf.yield", "scf.condition",
                         "shape.assuming_yield", "tensor.yield", "linalg.yield", "cf.br", "cf.cond_br"))


def known(name: str) -> bool | None:
    """Whether an operation exists; None where its dialect is not known to irscope."""
    dialect, _, short = name.partition(".")
    if dialect in CLOSED:
        return short in CLOSED[dialect]
    return True if dialect in OPEN else None

"""The pretty forms of operations, declared as their dialects declare them (StableHLO's ``assemblyFormat``).

A form is a row of parts between blanks: ``$`` is an operand, ``$*`` are operands between commas, ``name:kind`` is the value of an
attribute, ``{}`` the dictionary of other attributes, ``[`` and ``]`` enclose what may be missing, ``:kind`` is a colon with types behind
it, and anything else is written as it stands. ``$ , dim = dimension:i64 {} :function`` is the form of

    %1 = stablehlo.get_dimension_size %0, dim = 1 {attributes} : (tensor<2x3xf32>) -> tensor<i32>
"""
from __future__ import annotations

import re
from functools import cache

from irscope.formats.stablehlo.draft import Draft, Step
from irscope.formats.stablehlo.form_types import TYPES, read_attributes
from irscope.formats.stablehlo.form_values import VALUES
from irscope.formats.stablehlo.lexer import Cursor
from irscope.formats.stablehlo.values import Values

TOKEN = re.compile(r"\$\*|\$|\{\}|\w+:\w+|:\w+|->|\w+|[^\s\w]")

OPTIONAL = (",", "(", "<")
"""What begins a part that may be missing."""

UNARY = "$ {} :same"
BINARY = "$ , $ {} :same"
MOVEMENT = "$* {} :function"

FORMS: dict[str, str] = {
    **dict.fromkeys(("abs", "cbrt", "ceil", "convert", "cosine", "count_leading_zeros", "exponential", "exponential_minus_one", "floor",
                     "imag", "is_finite", "log", "log_plus_one", "logistic", "negate", "not", "popcnt", "real", "round_nearest_afz",
                     "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh", "erf"), UNARY),
    **dict.fromkeys(("add", "and", "atan2", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "shift_left",
                     "shift_right_arithmetic", "shift_right_logical", "subtract", "xor"), BINARY),
    **dict.fromkeys(("bitcast_convert", "dynamic_pad", "dynamic_reshape", "dynamic_update_slice", "real_dynamic_slice", "reshape",
                     "uniform_dequantize", "uniform_quantize", "bitcast", "copy", "add_dependency", "collective_reduce"), MOVEMENT),
    "after_all": "$* {} :all",
    "broadcast": "$ , sizes = broadcast_sizes:ints {} :function",
    "broadcast_in_dim": "$ , dims = broadcast_dimensions:ints {} :function",
    "cholesky": "$ [ , lower = lower:bool ] {} :same",
    "clamp": "$ , $ , $ {} :same",
    "compare": "comparison_direction:word , $ , $ [ , compare_type:word ] {} :compared",
    "complex": "$ , $ {} :complex",
    "composite": "name:text $* {} :function",
    "concatenate": "$* , dim = dimension:i64 {} :function",
    "convolution": "( $* ) dim_numbers = dimension_numbers:conv , window = { window:window } {} :function",
    "create_token": "{} :results",
    "custom_call": "call_target_name:symbol ( $* ) {} :function",
    "dot": "$ , $ [ , precision = precision_config:precision ] {} :function",
    "dot_general": "$ , $ , dot_dimension_numbers:dot {} :function",
    "dynamic_broadcast_in_dim": "$ , $ , dims = broadcast_dimensions:ints {} :function",
    "dynamic_iota": "$ , dim = iota_dimension:i64 {} :function",
    "dynamic_slice": "$* , sizes = slice_sizes:ints {} :function",
    "einsum": "$ , $ , config = einsum_config:text {} :function",
    "fft": "$ , type = fft_type:word , length = fft_length:ints {} :function",
    "get_dimension_size": "$ , dim = dimension:i64 {} :function",
    "get_tuple_element": "$ [ index:i32 ] {} :function",
    "iota": "dim = iota_dimension:i64 {} :results",
    "optimization_barrier": "{} [ ( ) ] $* {} :all",
    "pad": "$ , $ , low = edge_padding_low:ints , high = edge_padding_high:ints , interior = interior_padding:ints {} :function",
    "partition_id": "{} :results",
    "reduce_precision": "$ , format = exponent_bits:format {} :same",
    "replica_id": "{} :results",
    "return": "$* {} :operands",
    "reverse": "$ , dims = dimensions:ints {} :same",
    "rng": "$ , $ , $ , distribution = rng_distribution:word {} :function",
    "rng_bit_generator": "$ , algorithm = rng_algorithm:word {} :function",
    "select": "$ , $ , $ {} :select",
    "set_dimension_size": "$ , $ , dim = dimension:i64 {} :function",
    "slice": "$ start_indices:ranges {} :function",
    "transpose": "$ , dims = permutation:ints {} :function",
    "tuple": "$* {} :tuple",
    "unary_einsum": "$ , config = einsum_config:text {} :function",
}
"""Of ``stablehlo`` and ``mhlo``; those without a form of their own are always quoted, or are in ``special.py``."""
CHLO: dict[str, str] = {
    "constant": "value:value {} :none", "top_k": "( $ , k = k:i64 ) {} :arrow", "constant_like": "value:value , $ {} :arrow",
}
OTHERS: dict[str, str] = {
    "func.call": "callee:callee ( $* ) {} :function", "func.return": "$* {} :operands", "func.constant": "value:value {} :results",
    "sdy.return": "$* {} :operands",
    "mhlo.topk": "( $ , k = k:i64 [ , largest = largest:bool ] ) {} :arrow",
    "sdy.sharding_constraint": "$ sharding:angle {} :same", "sdy.reshard": "$ sharding:angle {} :same",
    "sdy.propagation_barrier": "$ allowed_direction:key {} :same", "sdy.sharding_group": "$ group_id:group {} :operands",
    "sdy.mesh": "sym_name:symbol = mesh:mesh {} :none",
    "arith.constant": "{} value:value :none", "arith.cmpi": "predicate:any , $ , $ {} :same",
    "arith.cmpf": "predicate:any , $ , $ {} :same",
}
ARROW = "$* {} :arrow"
"""The form of chlo's other operations, and of those of ``arith``, ``shape``, ``tensor`` and the like."""


def form_of(name: str) -> str | None:
    """The pretty form of an operation; None where it has none."""
    dialect, _, short = name.partition(".")
    if name in OTHERS:
        return OTHERS[name]
    if dialect in ("stablehlo", "mhlo"):
        return FORMS.get(short)
    return CHLO.get(short, ARROW) if dialect == "chlo" else None


def read_form(form: str, values: Values, cursor: Cursor, draft: Draft) -> None:
    """Step over an operation's operands, attributes and types, after its name."""
    for step in steps(form):
        step(values, cursor, draft)


@cache
def steps(form: str) -> tuple[Step, ...]:
    """The steps that read a form."""
    tokens = TOKEN.findall(form)
    found: list[Step] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token == "[" and tokens[at] in OPTIONAL:
            end = tokens.index("]", at)
            found.append(_optional(" ".join(tokens[at:end]), tokens[at:at + 2]))
            at = end + 1
        else:
            found.append(step_of(token))
    return tuple(found)


def _optional(form: str, begin: list[str]) -> Step:
    """What may be missing: it is there where its first mark is, and after a comma no further operand."""
    inner = steps(form)

    def step(values: Values, cursor: Cursor, draft: Draft) -> None:
        if cursor.sees(begin[0]):
            for each in inner:
                each(values, cursor, draft)
    return step


def step_of(token: str) -> Step:
    """The step that reads one part of a form."""
    if token == "$":
        return lambda values, cursor, draft: draft.operands.append(cursor.operand())
    if token == "$*":
        return lambda values, cursor, draft: draft.operands.extend(cursor.operands())
    if token == "{}":
        return read_attributes
    if token[0] == ":" and len(token) > 1:
        return TYPES[token[1:]]
    if ":" in token:
        name, _, kind = token.partition(":")
        return VALUES[kind](name)
    if token[0].isalpha():
        return lambda values, cursor, draft: cursor.expect_word(token)
    return lambda values, cursor, draft: cursor.expect(token, f"in {draft.name}")

"""Clock cycles of one element of an elementwise instruction, as XLA measured them (hlo_op_profiles_data.h)."""
from __future__ import annotations

DEFAULT = 3
"""What nobody measured."""

_SM90: dict[str, dict[str, int]] = {
    "s8": {"divide": 356, "multiply": 7, "power": 122},
    "s16": {"divide": 364, "multiply": 7, "power": 122},
    "s32": {"divide": 297, "multiply": 3, "power": 71},
    "s64": {"divide": 685, "multiply": 11, "power": 253},
    "u8": {"divide": 300, "multiply": 7, "power": 122},
    "u16": {"divide": 304, "multiply": 7, "power": 126},
    "u32": {"divide": 122, "multiply": 3, "power": 71},
    "u64": {"divide": 629, "multiply": 11, "power": 253},
    "f16": {"cbrt": 201, "cosine": 997, "exponential": 102, "exponential-minus-one": 217, "log": 182, "log-plus-one": 245, "rsqrt": 95,
            "sine": 993, "sqrt": 95, "tanh": 502, "add": 7, "atan2": 451, "divide": 43, "multiply": 7, "power": 526, "subtract": 7},
    "f32": {"cbrt": 178, "cosine": 978, "exponential": 79, "exponential-minus-one": 190, "log": 166, "log-plus-one": 229, "rsqrt": 75,
            "sine": 958, "sqrt": 75, "tanh": 467, "add": 7, "atan2": 431, "divide": 19, "multiply": 3, "power": 510, "subtract": 7},
    "f64": {"cbrt": 586, "cosine": 558, "exponential": 376, "exponential-minus-one": 712, "log": 815, "log-plus-one": 1259,
            "rsqrt": 277, "sine": 554, "sqrt": 332, "tanh": 431, "add": 15, "atan2": 930, "divide": 526, "multiply": 15, "power": 2205,
            "subtract": 15},
    "c64": {"cosine": 2415, "exponential": 641, "exponential-minus-one": 2055, "log": 756, "log-plus-one": 633, "rsqrt": 3148,
            "sine": 2324, "sqrt": 4344, "tanh": 2379, "add": 7, "atan2": 6462, "divide": 498, "multiply": 79, "power": 5532,
            "subtract": 7},
}

_SM80: dict[str, dict[str, int]] = {
    "s8": {"divide": 417}, "s16": {"divide": 468}, "s64": {"divide": 1094}, "u8": {"divide": 420, "power": 417},
    "u16": {"divide": 391, "power": 454}, "u64": {"divide": 908, "power": 744},
    "f16": {"cbrt": 1195, "log": 321, "log-plus-one": 346, "sqrt": 124, "tanh": 499},
    "f32": {"log": 259, "tanh": 504, "power": 1221},
    "f64": {"cbrt": 1638, "exponential-minus-one": 572, "log": 699, "log-plus-one": 1223, "rsqrt": 329, "sine": 597, "sqrt": 397,
            "tanh": 733, "atan2": 1080, "divide": 831, "power": 1861},
    "c64": {"log": 1037, "log-plus-one": 1029, "atan2": 6618, "power": 4131},
}

CYCLES: dict[str, dict[str, dict[str, int]]] = {"sm_80": _SM80, "sm_90": _SM90}
"""By compute capability, element type and opcode. What a GPU was not measured for takes the default, not the cycles of another GPU."""


def cycles(capability: str, op: str, dtype: str) -> int:
    """Cycles of one element on a GPU; those of sm_90 where a GPU was not measured at all."""
    return CYCLES.get(capability, _SM90).get(dtype, {}).get(op, DEFAULT)

"""The scalar operations that every backend and the interpreter implement: ``unary``, ``binary``, ``compare``, ``convert``.

The semantics are HLO's (measured on XLA CPU where the specification is silent):

* integers wrap; ``div`` truncates, x/0 is -1 (all ones unsigned), INT_MIN/-1 is INT_MIN; ``rem`` has the sign of the dividend,
  x rem 0 is x, INT_MIN rem -1 is 0; shifts by the width or more (or a negative amount) yield 0, arithmetic ones the sign fill;
* ``max`` and ``min`` yield NaN when either is NaN, and order -0 below +0;
* denormal f32 and f64 count as zeros of their sign, as operands and as results (XLA runs with denormals off); ``neg``, ``abs``, ``real``,
  ``imag``, select, bitcast and moves keep them;
* on pred ``add``/``max``/``or`` are or, ``mul``/``min``/``and`` are and;
* ``convert``: float to integer truncates, saturates, NaN becomes 0; integer to integer wraps; anything to pred is ``!= 0``;
  to a narrower float rounds to nearest even; 8-bit floats without infinity overflow to NaN;
* ``compare`` directions are EQ NE LT LE GT GE; with NaN all are false but NE. The result is pred.
"""
from __future__ import annotations

UNARY = frozenset("""
neg abs sign not popcnt clz
exp expm1 log log1p sqrt rsqrt cbrt logistic erf
tanh sin cos tan sinh cosh asin acos atan asinh acosh atanh
floor ceil round_even round_away is_finite real imag
""".split())

BINARY = frozenset("add sub mul div rem max min pow atan2 and or xor shl shr_logical shr_arithmetic mulhi".split())

REDUCE = frozenset("add mul max min and or xor".split())
"""Horizontal reductions of a vector to one lane."""

COMPARE = frozenset("EQ NE LT LE GT GE".split())

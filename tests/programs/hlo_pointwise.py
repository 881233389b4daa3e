"""HLO steps: one element at a time."""
from __future__ import annotations

from dataclasses import replace

from tests.programs.hlo import STEPS, Hlo
from tests.programs.maker import Misfit, arithmetic, exact, keep, ordered, real
from tests.programs.numbers import DIGITS, INTEGERS, NARROW, added, ends, fits, is_complex, is_float, joined, multiplied, rounded
from tests.programs.program import Value


@STEPS(6)
def binary(maker: Hlo) -> None:
    left = maker.pick(arithmetic)
    right = maker.alike(left, exact=maker.draws.chance(0.5))
    op = maker.draws.one(("add", "subtract", "multiply", "maximum", "minimum"))
    if is_complex(left.dtype) and (op in ("maximum", "minimum") or (op == "multiply" and maker.palette.special)):
        raise Misfit  # a factor of one leaves an infinity as it is, and makes NaN of it by the formula
    if op in ("maximum", "minimum"):
        made = joined([left, right])
    else:
        made = multiplied(left, right) if op == "multiply" else added(left, right, 1 if op == "add" else -1)
    maker.add(keep(made), f"{op}({left.name}, {right.name})")


@STEPS(2, "integer", "narrow")
def integer(maker: Hlo) -> None:
    left = maker.pick(lambda v: v.dtype in INTEGERS and arithmetic(v))
    right = maker.alike(left)
    op = maker.draws.one(("and", "or", "xor", "divide", "remainder", "shift-left", "shift-right-logical", "shift-right-arithmetic"))
    low, high = ends(left.dtype)
    maker.add(replace(left, low=low, high=high), f"{op}({left.name}, {right.name})")


@STEPS(2, "integer")
def integer_unary(maker: Hlo) -> None:
    value = maker.pick(lambda v: v.dtype in INTEGERS and arithmetic(v))
    op = maker.draws.one(("not", "popcnt", "count-leading-zeros", "negate") + (("abs", "sign") if value.dtype[0] == "s" else ()))
    low, high = ends(value.dtype)
    maker.add(replace(value, low=low, high=high), f"{op}({value.name})")


@STEPS(3)
def unary(maker: Hlo) -> None:
    """What keeps exact numbers exact, and whatever may be done to others."""
    value = maker.pick(real)
    op = maker.draws.one(("negate", "abs", "floor", "ceil", "sign", "round-nearest-even", "round-nearest-afz"))
    if op == "negate":
        grade = "signed" if value.grade == "positive" else value.grade
        maker.add(replace(value, low=-value.high, high=-value.low, grade=grade), f"negate({value.name})")
    elif op == "abs":
        grade = "positive" if value.grade == "signed" else value.grade
        maker.add(replace(value, low=0, high=value.most, grade=grade), f"abs({value.name})")
    elif not exact(value) or value.dtype.startswith("f8"):
        raise Misfit
    elif op == "sign":
        maker.add(replace(value, low=-1, high=1, grain=1), f"sign({value.name})")
    else:
        maker.add(rounded(value), f"{op}({value.name})")


@STEPS(3, "reduction")
def smooth(maker: Hlo) -> None:
    """A function with rounding: what comes out is no longer exact."""
    value = maker.pick(lambda v: real(v) and v.grade != "rough" and v.most <= 12 and not v.dtype.startswith("f8"))
    narrow = value.dtype in NARROW
    if narrow and not exact(value):
        raise Misfit
    op = maker.draws.one(("tanh", "exponential", "logistic", "sine", "cosine", "rsqrt", "sqrt", "log", "log-plus-one",
                          "exponential-minus-one", "atan2", "erf", "cbrt", "power"))
    low, high = value.low, value.high
    grade = "rough" if narrow else "positive"
    if op in ("exponential", "logistic"):
        maker.add(replace(value, grade=grade, low=0, high=200000.0 if op == "exponential" else 1), f"{op}({value.name})")
    elif op in ("sqrt", "rsqrt", "log"):
        if low < 0 or (op != "sqrt" and low < 1e-3):
            value = maker.add(replace(value, low=0, high=value.most, grade="exact" if exact(value) else "positive"), f"abs({value.name})")
            one = maker.filled(value.dtype, value.shape, 1)
            value = maker.add(keep(added(value, one)), f"add({value.name}, {one.name})")
        # log is zero at 1, where a relative error counts for nothing.
        maker.add(replace(value, grade="rough" if op == "log" else grade, low=-8 if op == "log" else 0, high=max(8.0, high)), f"{op}({value.name})")
    elif op == "atan2" or op == "power":
        if not exact(value):
            raise Misfit
        two = maker.filled(value.dtype, value.shape, 2)
        names = f"{value.name}, {two.name}" if op == "atan2" else f"{two.name}, {value.name}"
        maker.add(replace(value, grade="rough", low=-5000, high=5000), f"{op}({names})")
    elif op == "log-plus-one":
        if low < 0:
            raise Misfit
        maker.add(replace(value, grade=grade, high=8), f"{op}({value.name})")
    else:
        if not exact(value) and op in ("sine", "cosine"):
            raise Misfit
        limit = 200000.0 if op.startswith("exp") else 3.0
        maker.add(replace(value, grade="rough" if narrow else "signed", low=-limit, high=limit), f"{op}({value.name})")


@STEPS(1.5)
def quotient(maker: Hlo) -> None:
    """Division by what is not near zero."""
    value = maker.pick(lambda v: real(v) and v.grade != "rough" and not v.dtype.startswith("f8") and (exact(v) or v.dtype not in NARROW))
    below = maker.pick(lambda v: v.dtype == value.dtype and v.shape == value.shape and exact(v))
    square = maker.add(keep(multiplied(below, below)), f"multiply({below.name}, {below.name})")
    one = maker.filled(value.dtype, value.shape, 1)
    under = maker.add(replace(keep(added(square, one)), low=1), f"add({square.name}, {one.name})")
    grade = "rough" if value.dtype in NARROW else "positive" if value.low >= 0 else "signed"
    maker.add(replace(value, grade=grade), f"divide({value.name}, {under.name})")


@STEPS(2)
def choose(maker: Hlo) -> None:
    """A comparison, and a selection by it or by what is there."""
    left = maker.pick(lambda v: exact(v) and not v.dtype.startswith("f8"))
    right = maker.alike(left)
    ways = ("EQ", "NE") if is_complex(left.dtype) else ("LT", "LE", "GT", "GE", "EQ", "NE")
    mask = maker.add(Value("", "pred", left.shape, "exact", 0, 1), f"compare({left.name}, {right.name}), direction={maker.draws.one(ways)}")
    if maker.draws.chance(0.3):
        other = maker.alike(mask)
        mask = maker.add(mask, f"{maker.draws.one(('and', 'or', 'xor'))}({mask.name}, {other.name})")
    first = maker.draws.late([v for v in maker.values if v.shape == left.shape and v.dtype != "pred"] or [left])
    second = maker.alike(first, exact=exact(first))
    maker.add(keep(joined([first, second])), f"select({mask.name}, {first.name}, {second.name})")


@STEPS(1.5)
def limit(maker: Hlo) -> None:
    value = maker.pick(lambda v: ordered(v) and v.dtype != "pred" and v.grade != "rough" and arithmetic(v))
    low, high = maker.draws.one(((0, 1), (-2, 2), (-1, 3), (0, 8))) if value.dtype[0] != "u" else (1, 9)
    maker.limited(value, low, high)


@STEPS(3, "narrow", "mixed")
def convert(maker: Hlo) -> None:
    """To another type that holds the value, one digit for one; integers to narrower ones wrap."""
    value = maker.pick(lambda v: ordered(v) and (exact(v) or v.dtype == "f32"))
    dtype = maker.dtype()
    if is_complex(dtype) or dtype == value.dtype:
        raise Misfit
    if dtype in INTEGERS and real(value):
        low, high = ends(dtype)
        if not exact(value) or value.low < low or value.high > high:
            raise Misfit
        maker.add(replace(value, dtype=dtype, low=int(value.low), high=int(value.high)), f"convert({value.name})")
        return
    if is_float(dtype) and value.dtype in INTEGERS and not fits(dtype, value.most, 1.0):
        if dtype in NARROW or value.most > 1e15:
            raise Misfit
    if dtype in DIGITS and exact(value) and fits(dtype, value.most, value.grain):
        maker.add(replace(value, dtype=dtype), f"convert({value.name})")
    elif dtype in ("f32", "f64") and value.dtype not in NARROW:
        maker.add(replace(value, dtype=dtype, grade="signed" if value.low < 0 else "positive"), f"convert({value.name})")
    elif dtype in INTEGERS and value.dtype in (*INTEGERS, "pred"):
        maker.add(replace(value, dtype=dtype), f"convert({value.name})")
    elif dtype == "pred" and exact(value) and not value.dtype.startswith("f8"):
        maker.add(Value("", "pred", value.shape, "exact", 0, 1), f"convert({value.name})")
    else:
        raise Misfit


@STEPS(0.7)
def bits(maker: Hlo) -> None:
    """The bits of a value as another type of its width."""
    value = maker.pick(lambda v: v.dtype in ("s32", "u32", "s8", "u8", "s16", "u16", "f32", "bf16", "f16") and exact(v))
    to = {"s32": "u32", "u32": "s32", "s8": "u8", "u8": "s8", "s16": "u16", "u16": "s16", "f32": "s32", "bf16": "s16", "f16": "u16"}[value.dtype]
    if real(value):
        raise Misfit  # zero has two signs
    low, high = ends(to)
    maker.add(replace(value, dtype=to, low=low, high=high), f"bitcast-convert({value.name})")


@STEPS(0.6, "mixed")
def complex_parts(maker: Hlo) -> None:
    value = maker.pick(lambda v: v.dtype in ("c64", "c128", "f32", "f64"))
    wide = {"c64": "f32", "c128": "f64"}
    if value.dtype in wide:
        op = maker.draws.one(("real", "imag"))
        maker.add(replace(value, dtype=wide[value.dtype], low=-value.most, high=value.most), f"{op}({value.name})")
    elif exact(value):
        other = maker.alike(value)
        low, high = min(value.low, other.low), max(value.high, other.high)
        maker.add(replace(value, dtype={"f32": "c64", "f64": "c128"}[value.dtype], low=low, high=high, grain=min(value.grain, other.grain)),
                  f"complex({value.name}, {other.name})")
    else:
        raise Misfit

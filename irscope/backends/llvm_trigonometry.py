"""sin, cos and tan of any argument: Cody and Waite's reduction with fused multiplications, and Payne and Hanek's for large arguments.

The fast reduction is valid up to 2**16 (f32) or 2**30 (f64), less on a machine without fma. Beyond, a rarely taken branch calls, lane by
lane, a function that multiplies the argument's bits with the right piece of 2/pi.
"""
from __future__ import annotations

from collections.abc import Callable

from irscope.backends.llvm_code import Code
from irscope.backends.llvm_coefficients import TWO_OVER_PI, TWO_OVER_PI_BITS
from irscope.backends.llvm_elementary import coefficients, remainder_of
from irscope.backends.llvm_lanes import Lanes
from irscope.backends.llvm_remainder import lanewise

_LIMIT = {32: 2.0 ** 16, 64: 2.0 ** 30}
_PARTS = {
    32: (1.57079637050628662109375, -4.37113882867379e-08, -1.71512451306e-15),
    64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
"""pi/2 in three parts, each the nearest float of the remainder."""
_SPLIT_LIMIT = {32: 2.0 ** 12, 64: 2.0 ** 20}
_SPLIT_PARTS = {
    32: (1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8),
    64: (1.57079632673412561417e+00, 6.07710050630396597660e-11, 2.02226624871116645580e-21, 8.47842766036889956997e-32),
}
"""The same for machines without fused multiplication: parts with so few bits that their multiples are exact."""
_TWO_OVER_PI = 0.6366197723675814

Finish = Callable[[Lanes, str, str], str]


def sine(v: Lanes, x: str) -> str:
    return _signed_zero(v, x, _anywhere(v, x, "sin", _sine))


def cosine(v: Lanes, x: str) -> str:
    return _anywhere(v, x, "cos", _cosine)


def tangent(v: Lanes, x: str) -> str:
    return _signed_zero(v, x, _anywhere(v, x, "tan", _tangent))


def _signed_zero(v: Lanes, x: str, out: str) -> str:
    """Restore the sign of a zero, which the reduction has lost."""
    return v.sel(v.eq(x, v.c(0.0)), x, out)


def _anywhere(v: Lanes, x: str, name: str, finish: Finish) -> str:
    """The fast form, and the slow one where some lane is out of its range."""
    r, quadrant = _reduce(v, x)
    quick = finish(v, r, quadrant)
    far = v.any(v.fcmp("ogt", v.abs(x), v.c(_limit(v))))
    one = f"@irs.{name}.{v.integer}"
    helpers = v.code.helpers
    if one not in helpers:
        helpers.setdefault("@irs.pio2", _payne_hanek())
        v.code.declarations.update(("declare i192 @llvm.ctlz.i192(i192, i1)", "declare i192 @llvm.abs.i192(i192, i1)"))
        helpers[one] = _slow(v, one, finish)
    wide = one
    if v.lanes > 1:
        wide = f"@irs.{name}.v{v.lanes}{v.integer}"
        helpers.setdefault(wide, lanewise(wide, one, v.element, v.lanes))
    return v.code.rarely(far, v.kind, wide, ((v.kind, x), (v.kind, quick)), quick)


def _limit(v: Lanes) -> float:
    return (_LIMIT if v.has_fma else _SPLIT_LIMIT)[v.bits]


def _reduce(v: Lanes, x: str) -> tuple[str, str]:
    """x - n pi/2, between -pi/4 and pi/4, and the integer that has n in its low bits.

    The first step is exact: both terms are multiples of the same small power of two.
    """
    r, _, shifted = remainder_of(v, x, _TWO_OVER_PI, (_PARTS if v.has_fma else _SPLIT_PARTS)[v.bits])
    return r, v.bits_of(shifted)


def _sine_core(v: Lanes, r: str, z: str) -> str:
    return v.copysign(v.fma(v.mul(r, z), v.poly(z, *coefficients(v, "sin")), r), r)


def _cosine_core(v: Lanes, z: str) -> str:
    # 1 - z/2 loses bits that are added back.
    half = v.mul(z, v.c(0.5))
    head = v.sub(v.c(1.0), half)
    lost = v.sub(v.sub(v.c(1.0), head), half)
    return v.add(head, v.fma(v.mul(z, z), v.poly(z, *coefficients(v, "cos")), lost))


def _both(v: Lanes, r: str) -> tuple[str, str]:
    z = v.mul(r, r)
    return _sine_core(v, r, z), _cosine_core(v, z)


def _odd(v: Lanes, quadrant: str) -> str:
    return v.icmp("ne", v.int("and", quadrant, v.ic(1)), v.ic(0))


def _turned(v: Lanes, x: str, quadrant: str) -> str:
    """Negate in the lower half plane."""
    sign = v.int("shl", v.int("and", quadrant, v.ic(2)), v.ic(v.bits - 2))
    return v.float_of(v.int("xor", v.bits_of(x), sign))


def _sine(v: Lanes, r: str, quadrant: str) -> str:
    s, c = _both(v, r)
    return _turned(v, v.sel(_odd(v, quadrant), c, s), quadrant)


def _cosine(v: Lanes, r: str, quadrant: str) -> str:
    s, c = _both(v, r)
    return _turned(v, v.sel(_odd(v, quadrant), s, c), v.int("add", quadrant, v.ic(1)))


def _tangent(v: Lanes, r: str, quadrant: str) -> str:
    s, c = _both(v, r)
    odd = _odd(v, quadrant)
    return v.div(v.sel(odd, v.neg(c), s), v.sel(odd, s, c))


def _slow(v: Lanes, name: str, finish: Finish) -> str:
    """One lane, exactly reduced where it is out of the fast range, else the fast result."""
    code = Code()
    code.helpers, code.declarations = v.code.helpers, v.code.declarations
    one = Lanes(code, v.element, 1, v.has_fma)
    element = v.element
    far = one.fcmp("ogt", one.abs("%x"), one.c(_limit(v)))
    wide = "%x" if element == "double" else code.pure("fpext float %x to double", "%x")
    pair = code.pure(f"call {{ double, i64 }} @irs.pio2(double {wide})", wide)
    r = code.pure(f"extractvalue {{ double, i64 }} {pair}, 0", pair)
    quadrant = code.pure(f"extractvalue {{ double, i64 }} {pair}, 1", pair)
    if element == "float":
        r = code.pure(f"fptrunc double {r} to float", r)
        quadrant = code.pure(f"trunc i64 {quadrant} to i32", quadrant)
    out = one.sel(far, finish(one, r, quadrant), "%quick")
    body = "\n".join(code.text())
    return (f"define internal {element} {name}({element} %x, {element} %quick) noinline nounwind {{\nentry:\n{body}\n"
            f"  ret {element} {out}\n}}\n")


def _payne_hanek() -> str:
    """x modulo pi/2 for any finite x of magnitude 2**-8 or more, as (remainder, quadrant); NaN for values that are not finite.

    x = M * 2**E with an integer M of 53 bits. 192 bits of 2/pi, from the first that matters modulo 4, times M, modulo 1:
    the upper two bits are the quadrant, the rest the fraction of it.
    """
    zeros = 64
    bits = TWO_OVER_PI_BITS + zeros
    words = [(TWO_OVER_PI >> (TWO_OVER_PI_BITS - 64 * (i + 1))) & ((1 << 64) - 1) for i in range(TWO_OVER_PI_BITS // 64)]
    table = ", ".join(f"i64 {w - (1 << 64) if w >> 63 else w}" for w in [0] * (zeros // 64) + words + [0] * 4)
    count = bits // 64 + 4
    return _PAYNE_HANEK.format(table=table, count=count, first=zeros - 1075 - 2)


_PAYNE_HANEK = """@irs.two_over_pi = internal unnamed_addr constant [{count} x i64] [{table}], align 64
define internal {{ double, i64 }} @irs.pio2(double %x) noinline nounwind {{
entry:
  %b = bitcast double %x to i64
  %field0 = lshr i64 %b, 52
  %field = and i64 %field0, 2047
  %special = icmp eq i64 %field, 2047
  br i1 %special, label %nan, label %go
nan:
  %d = fsub double %x, %x
  %n0 = insertvalue {{ double, i64 }} poison, double %d, 0
  %n1 = insertvalue {{ double, i64 }} %n0, i64 0, 1
  ret {{ double, i64 }} %n1
go:
  %low = and i64 %b, 4503599627370495
  %m = or i64 %low, 4503599627370496
  %start = add i64 %field, {first}
  %small = icmp slt i64 %start, 0
  %s = select i1 %small, i64 0, i64 %start
  %word = lshr i64 %s, 6
  %bit = and i64 %s, 63
  %p0 = getelementptr [{count} x i64], ptr @irs.two_over_pi, i64 0, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %w0 = load i64, ptr %p0
  %w1 = load i64, ptr %p1
  %w2 = load i64, ptr %p2
  %w3 = load i64, ptr %p3
  %a0 = call i64 @llvm.fshl.i64(i64 %w0, i64 %w1, i64 %bit)
  %a1 = call i64 @llvm.fshl.i64(i64 %w1, i64 %w2, i64 %bit)
  %a2 = call i64 @llvm.fshl.i64(i64 %w2, i64 %w3, i64 %bit)
  %m128 = zext i64 %m to i128
  %a1w = zext i64 %a1 to i128
  %a2w = zext i64 %a2 to i128
  %t2 = mul i128 %a2w, %m128
  %t1 = mul i128 %a1w, %m128
  %t0 = mul i64 %a0, %m
  %c2 = lshr i128 %t2, 64
  %u1 = add i128 %t1, %c2
  %f1 = trunc i128 %u1 to i64
  %f2 = trunc i128 %t2 to i64
  %c1w = lshr i128 %u1, 64
  %c1 = trunc i128 %c1w to i64
  %f0 = add i64 %t0, %c1
  %g0 = add i64 %f0, 2305843009213693952
  %q = lshr i64 %g0, 62
  %qs = shl i64 %q, 62
  %h0 = sub i64 %f0, %qs
  %x0 = sext i64 %h0 to i192
  %x1 = zext i64 %f1 to i192
  %x2 = zext i64 %f2 to i192
  %y0 = shl i192 %x0, 128
  %y1 = shl i192 %x1, 64
  %z0 = or i192 %y0, %y1
  %z = or i192 %z0, %x2
  %abs = call i192 @llvm.abs.i192(i192 %z, i1 false)
  %lz = call i192 @llvm.ctlz.i192(i192 %abs, i1 false)
  %norm = shl i192 %abs, %lz
  %topw = lshr i192 %norm, 128
  %top = trunc i192 %topw to i64
  %f = uitofp i64 %top to double
  %lz64 = trunc i192 %lz to i64
  %e0 = sub i64 961, %lz64
  %e1 = shl i64 %e0, 52
  %power = bitcast i64 %e1 to double
  %frac = fmul double %f, %power
  %r0 = fmul double %frac, 0x3FF921FB54442D18
  %negz = icmp slt i192 %z, 0
  %negx = icmp slt i64 %b, 0
  %neg = xor i1 %negz, %negx
  %rn = fneg double %r0
  %r = select i1 %neg, double %rn, double %r0
  %qn = sub i64 0, %q
  %qq = select i1 %negx, i64 %qn, i64 %q
  %o0 = insertvalue {{ double, i64 }} poison, double %r, 0
  %o1 = insertvalue {{ double, i64 }} %o0, i64 %qq, 1
  ret {{ double, i64 }} %o1
}}
declare i64 @llvm.fshl.i64(i64, i64, i64)
"""

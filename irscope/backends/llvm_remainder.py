"""The float remainder with the sign of the dividend (C's fmod), exact, by subtracting shifted divisors; no libm."""
from __future__ import annotations

from irscope.backends.llvm_lanes import Lanes
from irscope.backends.llvm_types import vector


def remainder(v: Lanes, x: str, y: str) -> str:
    """``x`` rem ``y``: a call of a scalar function for each lane."""
    name = f"@irs.fmod.{v.integer}"
    v.code.helpers.setdefault(name, _scalar(v.element))
    v.code.declarations.add(f"declare {v.integer} @llvm.ctlz.{v.integer}({v.integer}, i1)")
    if v.lanes == 1:
        return v.code.call(v.element, name, (v.element, x), (v.element, y))
    wide = f"@irs.fmod.v{v.lanes}{v.integer}"
    v.code.helpers.setdefault(wide, lanewise(wide, name, v.element, v.lanes))
    return v.code.call(v.kind, wide, (v.kind, x), (v.kind, y))


def lanewise(name: str, scalar_name: str, element: str, lanes: int) -> str:
    """The text of a function of two vectors that calls a scalar function for each lane."""
    kind, out = vector(element, lanes), "poison"
    lines = [f"define internal {kind} {name}({kind} %x0, {kind} %x1) noinline nounwind {{"]
    for lane in range(lanes):
        lines += [f"  %x{i}.{lane} = extractelement {kind} %x{i}, i64 {lane}" for i in (0, 1)]
        lines += [f"  %r{lane} = call {element} {scalar_name}({element} %x0.{lane}, {element} %x1.{lane})",
                  f"  %o{lane} = insertelement {kind} {out}, {element} %r{lane}, i64 {lane}"]
        out = f"%o{lane}"
    return "\n".join([*lines, f"  ret {kind} {out}", "}"]) + "\n"


def _scalar(element: str) -> str:
    bits, mantissa = (32, 23) if element == "float" else (64, 52)
    top, exponent = 1 << mantissa, bits - 1 - mantissa
    return _SCALAR.format(element=element, i=f"i{bits}", mantissa=mantissa, exponent=exponent, shifts=bits - 1, sign=-(1 << (bits - 1)),
                          magnitude=(1 << (bits - 1)) - 1, infinity=((1 << exponent) - 1) << mantissa, top=top, low=top - 1)


_SCALAR = """define internal {element} @irs.fmod.{i}({element} %x, {element} %y) noinline nounwind {{
entry:
  %bx = bitcast {element} %x to {i}
  %by = bitcast {element} %y to {i}
  %sx = and {i} %bx, {sign}
  %ax = and {i} %bx, {magnitude}
  %ay = and {i} %by, {magnitude}
  %y0 = fcmp oeq {element} %y, 0.0
  %xbad = icmp uge {i} %ax, {infinity}
  %ynan = icmp ugt {i} %ay, {infinity}
  %bad0 = or i1 %y0, %xbad
  %bad = or i1 %bad0, %ynan
  br i1 %bad, label %invalid, label %valid
invalid:
  %p = fmul {element} %x, %y
  %q = fdiv {element} %p, %p
  ret {element} %q
valid:
  %less = icmp ult {i} %ax, %ay
  br i1 %less, label %same, label %split
same:
  ret {element} %x
split:
  %ex0 = lshr {i} %ax, {mantissa}
  %ey0 = lshr {i} %ay, {mantissa}
  %mx0 = and {i} %ax, {low}
  %my0 = and {i} %ay, {low}
  %xn = icmp ne {i} %ex0, 0
  %yn = icmp ne {i} %ey0, 0
  %zx = call {i} @llvm.ctlz.{i}({i} %mx0, i1 false)
  %zy = call {i} @llvm.ctlz.{i}({i} %my0, i1 false)
  %dx = sub {i} %zx, {exponent}
  %dy = sub {i} %zy, {exponent}
  %mx1 = or {i} %mx0, {top}
  %my1 = or {i} %my0, {top}
  %fx = and {i} %dx, {shifts}
  %fy = and {i} %dy, {shifts}
  %mxd = shl {i} %mx0, %fx
  %myd = shl {i} %my0, %fy
  %exd = sub {i} 1, %dx
  %eyd = sub {i} 1, %dy
  %mx = select i1 %xn, {i} %mx1, {i} %mxd
  %my = select i1 %yn, {i} %my1, {i} %myd
  %ex = select i1 %xn, {i} %ex0, {i} %exd
  %ey = select i1 %yn, {i} %ey0, {i} %eyd
  br label %loop
loop:
  %m = phi {i} [ %mx, %split ], [ %mnext, %step ]
  %e = phi {i} [ %ex, %split ], [ %enext, %step ]
  %d = sub {i} %m, %my
  %neg = icmp slt {i} %d, 0
  %r = select i1 %neg, {i} %m, {i} %d
  %more = icmp sgt {i} %e, %ey
  br i1 %more, label %step, label %done
step:
  %mnext = shl {i} %r, 1
  %enext = sub {i} %e, 1
  br label %loop
done:
  %rz = icmp eq {i} %r, 0
  br i1 %rz, label %zero, label %pack
zero:
  %zf = bitcast {i} %sx to {element}
  ret {element} %zf
pack:
  %lz = call {i} @llvm.ctlz.{i}({i} %r, i1 true)
  %up = sub {i} %lz, {exponent}
  %rn = shl {i} %r, %up
  %en = sub {i} %e, %up
  %normal = icmp sgt {i} %en, 0
  br i1 %normal, label %big, label %small
big:
  %frac = and {i} %rn, {low}
  %field = shl {i} %en, {mantissa}
  %whole = or {i} %frac, %field
  %ws = or {i} %whole, %sx
  %wf = bitcast {i} %ws to {element}
  ret {element} %wf
small:
  %down = sub {i} 1, %en
  %rs = lshr {i} %rn, %down
  %ss = or {i} %rs, %sx
  %sf = bitcast {i} %ss to {element}
  ret {element} %sf
}}
"""
"""The function on one lane; ``i`` is the integer type of the same width as ``element``.

A denormal divisor is 0 where denormals are flushed: the comparison of floats follows the processor's mode.
Magnitudes are (mantissa with its leading one, exponent); denormals are shifted up first.
"""

"""Long programs of HLO, as XLA gets them from JAX: before its own rewriting; the layers with scopes and source lines."""

from __future__ import annotations

import re

from benchmarks.long_programs.shape import Shape, blocks, repeated

MODULE = """\
HloModule long

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum.r = f32[] add(a, b)
}

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT max.r = f32[] maximum(a, b)
}

"""
ENTRY = """\
ENTRY main {
  x.0 = f32[64,128] parameter(0)
  w = f32[128,128] parameter(1)
  v = f32[128] parameter(2)
  y = f32[64,128] parameter(3)
  flag = pred[] parameter(4)
  start = s32[] constant(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  half = f32[] constant(0.5)
"""
FOOT = "  ROOT out = f32[64,128] negate(x.$)\n}\n"

CHAIN = """\
  a.$ = f32[64,128] add(x.$, y)
  b.$ = f32[64,128] tanh(a.$)
  c.$ = f32[64,128] multiply(b.$, x.$)
  d.$ = f32[64,128] maximum(c.$, y)
  x.$+ = f32[64,128] subtract(d.$, b.$)
"""

LAYER = """\
  n1.$ = f32[64] reduce(x.$, zero), dimensions={1}, to_apply=sum # norm/reduce_sum 12
  n2.$ = f32[] constant(128)
  n3.$ = f32[64] broadcast(n2.$), dimensions={}
  n4.$ = f32[64] divide(n1.$, n3.$) # norm/div 12
  n5.$ = f32[64,128] broadcast(n4.$), dimensions={0}
  n6.$ = f32[64,128] subtract(x.$, n5.$) # norm/sub 13
  n7.$ = f32[64,128] multiply(n6.$, n6.$) # norm/integer_pow 13
  n8.$ = f32[64] reduce(n7.$, zero), dimensions={1}, to_apply=sum # norm/reduce_sum 13
  n9.$ = f32[64] divide(n8.$, n3.$) # norm/div 13
  n10.$ = f32[] constant(1e-5)
  n11.$ = f32[64] broadcast(n10.$), dimensions={}
  n12.$ = f32[64] add(n9.$, n11.$) # norm/add 14
  n13.$ = f32[64] rsqrt(n12.$) # norm/rsqrt 14
  n14.$ = f32[64,128] broadcast(n13.$), dimensions={0}
  n15.$ = f32[64,128] multiply(n6.$, n14.$) # norm/mul 14
  n16.$ = f32[64,128] broadcast(v), dimensions={1}
  n17.$ = f32[64,128] multiply(n15.$, n16.$) # norm/mul 15
  q.$ = f32[64,128] dot(n17.$, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} # attention/q/dot_general 21
  k.$ = f32[64,128] dot(n17.$, w), lhs_contracting_dims={1}, rhs_contracting_dims={1} # attention/k/dot_general 22
  s.$ = f32[64,64] dot(q.$, k.$), lhs_contracting_dims={1}, rhs_contracting_dims={1} # attention/dot_general 23
  s1.$ = f32[64] reduce(s.$, low), dimensions={1}, to_apply=max # attention/reduce_max 24
  s2.$ = f32[64,64] broadcast(s1.$), dimensions={0}
  s3.$ = f32[64,64] subtract(s.$, s2.$) # attention/sub 24
  s4.$ = f32[64,64] exponential(s3.$) # attention/exp 24
  s5.$ = f32[64] reduce(s4.$, zero), dimensions={1}, to_apply=sum # attention/reduce_sum 24
  s6.$ = f32[64,64] broadcast(s5.$), dimensions={0}
  s7.$ = f32[64,64] divide(s4.$, s6.$) # attention/div 24
  s8.$ = f32[64,128] dot(s7.$, n17.$), lhs_contracting_dims={1}, rhs_contracting_dims={0} # attention/dot_general 25
  r.$ = f32[64,128] add(x.$, s8.$) # add 30
  m1.$ = f32[64,128] dot(r.$, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} # mlp/dot_general 31
  m2.$ = f32[64,128] broadcast(v), dimensions={1}
  m3.$ = f32[64,128] add(m1.$, m2.$) # mlp/add 31
  m4.$ = f32[64,128] multiply(m3.$, m3.$) # mlp/gelu/mul 32
  m5.$ = f32[64,128] multiply(m4.$, m3.$) # mlp/gelu/mul 32
  m6.$ = f32[] constant(0.044715)
  m7.$ = f32[64,128] broadcast(m6.$), dimensions={}
  m8.$ = f32[64,128] multiply(m7.$, m5.$) # mlp/gelu/mul 32
  m9.$ = f32[64,128] add(m3.$, m8.$) # mlp/gelu/add 32
  m10.$ = f32[64,128] tanh(m9.$) # mlp/gelu/tanh 32
  m11.$ = f32[64,128] broadcast(half), dimensions={}
  m12.$ = f32[64,128] multiply(m11.$, m10.$) # mlp/gelu/mul 32
  m13.$ = f32[64,128] add(m11.$, m12.$) # mlp/gelu/add 32
  m14.$ = f32[64,128] multiply(m3.$, m13.$) # mlp/gelu/mul 32
  m15.$ = f32[64,128] dot(m14.$, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} # mlp/dot_general 33
  x.$+ = f32[64,128] add(r.$, m15.$) # add 34
"""
METADATA = r', metadata={op_name="jit(net)/layer_$/\1" source_file="net.py" source_line=\2}'
"""What a comment at the end of a line stands for."""

WIDTH = 16
FAN = "".join((
    "  p.$ = f32[64,128] tanh(x.$)\n",
    *(f"  a{k}.$ = f32[64,128] {('add', 'multiply', 'maximum', 'subtract')[k % 4]}(p.$, y)\n" for k in range(WIDTH)),
    "  t0.$ = f32[64,128] negate(a0.$)\n",
    *(f"  t{k}.$ = f32[64,128] add(t{k - 1}.$, a{k}.$)\n" for k in range(1, WIDTH)),
    f"  x.$+ = f32[64,128] sine(t{WIDTH - 1}.$)\n",
))  # fmt: skip

REDUCTIONS = """\
  a.$ = f32[64,128] exponential(x.$)
  b.$ = f32[64] reduce(a.$, zero), dimensions={1}, to_apply=sum
  c.$ = f32[64,128] broadcast(b.$), dimensions={0}
  d.$ = f32[64,128] divide(a.$, c.$)
  e.$ = f32[128] reduce(d.$, low), dimensions={0}, to_apply=max
  f.$ = f32[64,128] broadcast(e.$), dimensions={1}
  x.$+ = f32[64,128] subtract(d.$, f.$)
"""

SMALL = """\
ENTRY main {
  x.0 = f32[16,16] parameter(0)
  s = f32[16,16] parameter(1)
  u = f32[16] parameter(2)
  zero = f32[] constant(0)
"""
PRODUCTS = """\
  a.$ = f32[16,16] dot(x.$, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b.$ = f32[16,16] transpose(a.$), dimensions={1,0}
  c.$ = f32[16,16] dot(b.$, x.$), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  d.$ = f32[16,16] broadcast(u), dimensions={1}
  e.$ = f32[16,16] add(c.$, d.$)
  f.$ = f32[16,16] broadcast(zero), dimensions={}
  x.$+ = f32[16,16] maximum(e.$, f.$)
"""

CALLED = """\
body.$ {
  p = (s32[], f32[64,128]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,128] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  t = f32[64,128] tanh(x)
  u = f32[64,128] add(t, x)
  ROOT r = (s32[], f32[64,128]) tuple(n, u)
}

cond.$ {
  p = (s32[], f32[64,128]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT less = pred[] compare(i, n), direction=LT
}

call.$ {
  x = f32[64,128] parameter(0)
  e = f32[64,128] exponential(x)
  ROOT m = f32[64,128] multiply(e, x)
}

yes.$ {
  x = f32[64,128] parameter(0)
  ROOT m = f32[64,128] multiply(x, x)
}

no.$ {
  x = f32[64,128] parameter(0)
  ROOT m = f32[64,128] negate(x)
}

"""
CALLS = """\
  begin.$ = (s32[], f32[64,128]) tuple(start, x.$)
  loop.$ = (s32[], f32[64,128]) while(begin.$), condition=cond.$, body=body.$
  a.$ = f32[64,128] get-tuple-element(loop.$), index=1
  b.$ = f32[64,128] call(a.$), to_apply=call.$
  c.$ = f32[64,128] conditional(flag, b.$, a.$), true_computation=yes.$, false_computation=no.$
  x.$+ = f32[64,128] add(c.$, a.$)
"""

READERS = """\
  r.$ = f32[64,128] add(p, x.$)
  x.$+ = f32[64,128] multiply(x.$, r.$)
"""

TUPLES = """\
  a.$ = (f32[64,128], f32[64,128]) tuple(x.$, y)
  b.$ = ((f32[64,128], f32[64,128]), f32[64,128]) tuple(a.$, x.$)
  c.$ = (((f32[64,128], f32[64,128]), f32[64,128]), f32[64,128]) tuple(b.$, y)
  d.$ = ((f32[64,128], f32[64,128]), f32[64,128]) get-tuple-element(c.$), index=0
  e.$ = (f32[64,128], f32[64,128]) get-tuple-element(d.$), index=0
  f.$ = f32[64,128] get-tuple-element(e.$), index=0
  g.$ = f32[64,128] get-tuple-element(c.$), index=1
  x.$+ = f32[64,128] add(f.$, g.$)
"""

SHAPES = (
    repeated("chain", 5, MODULE + ENTRY, CHAIN, FOOT),
    repeated("layers", 45, MODULE + ENTRY, re.sub(r" # (\S+) (\d+)$", METADATA, LAYER, flags=re.MULTILINE), FOOT),
    repeated("fans", 2 * WIDTH + 2, MODULE + ENTRY, FAN, FOOT),
    repeated("reductions", 7, MODULE + ENTRY, REDUCTIONS, FOOT),
    repeated("products", 7, MODULE + SMALL, PRODUCTS, FOOT.replace("64,128", "16,16")),
    Shape("calls", 29, lambda n: blocks(MODULE, CALLED, "", n) + blocks(ENTRY, CALLS, FOOT, n)),
    repeated("readers", 2, MODULE + ENTRY + "  p = f32[64,128] tanh(y)\n", READERS, FOOT),
    repeated("tuples", 8, MODULE + ENTRY, TUPLES, FOOT),
)

"""Long programs of Relay: graphs as TVM's importers make them, functions that are called, branches, tuples."""

from __future__ import annotations

from benchmarks.long_programs.shape import Shape, blocks, repeated

VERSION = '#[version = "0.0.5"]\n'
T = "Tensor[(64, 128), float32]"
MAIN = (
    f"def @main(%x0: {T}, %w: Tensor[(128, 128), float32], %v: Tensor[(128), float32], %y: {T}, %flag: bool) -> {T} {{\n"
)
FOOT = "  negative(%x$)\n}\n"

CHAIN = """\
  %a$ = add(%x$, %y);
  %b$ = tanh(%a$);
  %c$ = multiply(%b$, 0.5f);
  %d$ = maximum(%c$, %y);
  %x$+ = subtract(%d$, %b$);
"""

LAYER = """\
  %n1_$ = mean(%x$, axis=[-1], keepdims=True);
  %n2_$ = subtract(%x$, %n1_$);
  %n3_$ = power(%n2_$, 2f);
  %n4_$ = mean(%n3_$, axis=[-1], keepdims=True);
  %n5_$ = add(%n4_$, 1e-05f);
  %n6_$ = sqrt(%n5_$);
  %n7_$ = divide(%n2_$, %n6_$);
  %n8_$ = multiply(%n7_$, %v);
  %q$ = nn.dense(%n8_$, %w, units=128);
  %k$ = nn.dense(%n8_$, %w, units=128);
  %s1_$ = nn.dense(%q$, %k$, units=64);
  %s2_$ = divide(%s1_$, 8f);
  %s3_$ = nn.softmax(%s2_$, axis=-1);
  %s4_$ = transpose(%n8_$, axes=[1, 0]);
  %s5_$ = nn.dense(%s3_$, %s4_$, units=128);
  %r$ = add(%x$, %s5_$);
  %m1_$ = nn.dense(%r$, %w, units=128);
  %m2_$ = nn.bias_add(%m1_$, %v, axis=-1);
  %m3_$ = power(%m2_$, 3f);
  %m4_$ = multiply(%m3_$, 0.044715f);
  %m5_$ = add(%m2_$, %m4_$);
  %m6_$ = multiply(%m5_$, 0.797885f);
  %m7_$ = tanh(%m6_$);
  %m8_$ = multiply(%m2_$, 0.5f);
  %m9_$ = add(%m7_$, 1f);
  %m10_$ = multiply(%m8_$, %m9_$);
  %m11_$ = nn.dense(%m10_$, %w, units=128);
  %x$+ = add(%r$, %m11_$);
"""

WIDTH = 16
FAN = "".join((
    "  %p$ = tanh(%x$);\n",
    *(f"  %a{k}_$ = {('add', 'multiply', 'maximum', 'subtract')[k % 4]}(%p$, %y);\n" for k in range(WIDTH)),
    "  %t0_$ = negative(%a0_$);\n",
    *(f"  %t{k}_$ = add(%t{k - 1}_$, %a{k}_$);\n" for k in range(1, WIDTH)),
    f"  %x$+ = sin(%t{WIDTH - 1}_$);\n",
))  # fmt: skip

REDUCTIONS = """\
  %a$ = exp(%x$);
  %b$ = sum(%a$, axis=[1], keepdims=True);
  %c$ = divide(%a$, %b$);
  %d$ = max(%c$, axis=[0], keepdims=True);
  %x$+ = subtract(%c$, %d$);
"""

S = "Tensor[(16, 16), float32]"
SMALL = f"def @main(%x0: {S}, %s: {S}, %u: Tensor[(16), float32]) -> {S} {{\n"
PRODUCTS = """\
  %a$ = nn.dense(%x$, %s, units=16);
  %b$ = transpose(%a$, axes=[1, 0]);
  %c$ = nn.dense(%b$, %x$, units=16);
  %d$ = nn.bias_add(%c$, %u, axis=-1);
  %x$+ = nn.relu(%d$);
"""

CALLED = f"""\
def @called$(%x: {T}) -> {T} {{
  %0 = exp(%x);
  %1 = multiply(%0, %x);
  sqrt(%1)
}}

"""
CALLS = """\
  %a$ = @called$(%x$);
  %b$ = if (%flag) {
    %e$ = multiply(%a$, %a$);
    tanh(%e$)
  } else {
    negative(%a$)
  };
  %x$+ = add(%b$, %a$);
"""

READERS = """\
  %r$ = add(%p, %x$);
  %x$+ = multiply(%x$, %r$);
"""

TUPLES = """\
  %a$ = (%x$, %y);
  %b$ = (%a$, %x$);
  %c$ = (%b$, %y);
  %d$ = %c$.0;
  %e$ = %d$.0;
  %f$ = %e$.0;
  %g$ = %c$.1;
  %x$+ = add(%f$, %g$);
"""

SHAPES = (
    repeated("chain", 5, VERSION + MAIN, CHAIN, FOOT),
    repeated("layers", 28, VERSION + MAIN, LAYER, FOOT),
    repeated("fans", 2 * WIDTH + 2, VERSION + MAIN, FAN, FOOT),
    repeated("reductions", 5, VERSION + MAIN, REDUCTIONS, FOOT),
    repeated("products", 5, VERSION + SMALL, PRODUCTS, FOOT),
    Shape("calls", 9, lambda n: blocks(VERSION, CALLED, "", n) + blocks(MAIN, CALLS, FOOT, n)),
    repeated("readers", 2, VERSION + MAIN + "  %p = tanh(%y);\n", READERS, FOOT),
    repeated("tuples", 8, VERSION + MAIN, TUPLES, FOOT),
)

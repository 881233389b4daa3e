"""Programs with an edge that a policy refuses, for the candidates of fixes."""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    """The key of the candidate that the program is for, the two ends of the refused edge, and the text."""

    key: str
    ends: str
    text: str


REDUCERS = """
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT }
"""


def hlo(layout: str, body: str) -> str:
    """A module that XLA printed before its optimisation, with this layout of the entry."""
    lines = "\n".join("  " + line.strip() for line in body.strip().splitlines())
    return f"HloModule m, entry_computation_layout={{{layout}}}\n{REDUCERS}\nENTRY main {{\n{lines}\n}}\n"


SCATTER = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"
PROGRAMS: dict[str, Program] = {
    "cast-after2": Program("cast-after", "f t", hlo("(bf16[64,128]{1,0}, f32[64,8]{1,0})->(f32[128,8]{1,0}, f32[64,128]{1,0})", """
        x = bf16[64,128]{1,0} parameter(0)
        w = f32[64,8]{1,0} parameter(1)
        f = f32[64,128]{1,0} convert(x)
        t = f32[128,64]{1,0} transpose(f), dimensions={1,0}
        d = f32[128,8]{1,0} dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        s = f32[64,128]{1,0} sort(f), dimensions={0}, to_apply=less
        ROOT r = (f32[128,8]{1,0}, f32[64,128]{1,0}) tuple(d, s)
    """)),
    "cast-before": Program("cast-before", "t f", hlo("(f32[64,128]{1,0})->(bf16[128,64]{1,0}, f32[128,64]{1,0})", """
        x = f32[64,128]{1,0} parameter(0)
        e = f32[64,128]{1,0} sort(x), dimensions={0}, to_apply=less
        t = f32[128,64]{1,0} transpose(e), dimensions={1,0}
        f = bf16[128,64]{1,0} convert(t)
        s = f32[128,64]{1,0} sort(t), dimensions={0}, to_apply=less
        ROOT r = (bf16[128,64]{1,0}, f32[128,64]{1,0}) tuple(f, s)
    """)),
    "merge": Program("merge-reductions", "s r", hlo("(f32[64,128,256]{2,1,0})->f32[64]{0}", """
        x = f32[64,128,256]{2,1,0} parameter(0)
        z = f32[] constant(0)
        e = f32[64,128,256]{2,1,0} exponential(x)
        s = f32[64,128]{1,0} reduce(e, z), dimensions={2}, to_apply=sum
        ROOT r = f32[64]{0} reduce(s, z), dimensions={1}, to_apply=sum
    """)),
    "reduce-unmoved": Program("reduce-unmoved", "t r", hlo("(f32[64,128,8]{2,1,0})->f32[8,64]{1,0}", """
        x = f32[64,128,8]{2,1,0} parameter(0)
        z = f32[] constant(0)
        e = f32[64,128,8]{2,1,0} exponential(x)
        t = f32[8,128,64]{2,1,0} transpose(e), dimensions={2,1,0}
        ROOT r = f32[8,64]{1,0} reduce(t, z), dimensions={1}, to_apply=sum
    """)),
    "product-swapped": Program("product-swapped", "d t", hlo("(f32[128,64]{1,0}, f32[64,32]{1,0})->f32[32,128]{1,0}", """
        x = f32[128,64]{1,0} parameter(0)
        w = f32[64,32]{1,0} parameter(1)
        d = f32[128,32]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        t = f32[32,128]{1,0} transpose(d), dimensions={1,0}
        ROOT e = f32[32,128]{1,0} exponential(t)
    """)),
    "reordered": Program("product-reordered", "d e", hlo("(f32[512,512]{1,0}, f32[512,512]{1,0}, f32[512]{0})->f32[512]{0}", """
        x = f32[512,512]{1,0} parameter(0)
        w = f32[512,512]{1,0} parameter(1)
        v = f32[512]{0} parameter(2)
        d = f32[512,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = f32[512]{0} dot(d, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """)),
    "slice": Program("slice-before", "d s", hlo("(f32[512,64]{1,0}, f32[64,512]{1,0})->f32[1,512]{1,0}", """
        x = f32[512,64]{1,0} parameter(0)
        w = f32[64,512]{1,0} parameter(1)
        d = f32[512,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        s = f32[1,512]{1,0} slice(d), slice={[511:512], [0:512]}
        ROOT e = f32[1,512]{1,0} exponential(s)
    """)),
    "scatter": Program("scatter-into", "s a", hlo("(f32[512,64]{1,0}, s32[16,1]{1,0}, f32[16,64]{1,0})->f32[512,64]{1,0}", """
        y = f32[512,64]{1,0} parameter(0)
        i = s32[16,1]{1,0} parameter(1)
        u = f32[16,64]{1,0} parameter(2)
        c = f32[] constant(0)
        z = f32[512,64]{1,0} broadcast(c), dimensions={}
        s = f32[512,64]{1,0} scatter(z, i, u), {SCATTER}
        ROOT a = f32[512,64]{1,0} add(s, y)
    """.replace("{SCATTER}", SCATTER))),
    "movement-after": Program("movement-after", "t n", hlo("(f32[64,128]{1,0})->(f32[128,64]{1,0}, f32[128,64]{1,0})", """
        x = f32[64,128]{1,0} parameter(0)
        e = f32[64,128]{1,0} sort(x), dimensions={0}, to_apply=less
        t = f32[128,64]{1,0} transpose(e), dimensions={1,0}
        n = f32[128,64]{1,0} negate(t)
        s = f32[128,64]{1,0} sort(t), dimensions={0}, to_apply=less
        ROOT r = (f32[128,64]{1,0}, f32[128,64]{1,0}) tuple(n, s)
    """)),
    "movement-before": Program("movement-before", "n b", hlo("(f32[64,64]{1,0})->f32[4096]{0}", """
        x = f32[64,64]{1,0} parameter(0)
        n = f32[64,64]{1,0} negate(x)
        b = f32[4096]{0} reshape(n)
        ROOT s = f32[4096]{0} sort(b), dimensions={0}, to_apply=less
    """)),
    "movement-before2": Program("movement-before", "e b", hlo("(f32[8]{0}, f32[512,8]{1,0})->f32[512,8]{1,0}", """
        x = f32[8]{0} parameter(0)
        y = f32[512,8]{1,0} parameter(1)
        e = f32[8]{0} exponential(x)
        b = f32[512,8]{1,0} broadcast(e), dimensions={1}
        ROOT r = f32[512,8]{1,0} add(y, b)
    """)),
    "reader-first": Program("reader-before-movement", "d t", hlo("(f32[128,64]{1,0}, f32[64,32]{1,0})->f32[4096]{0}", """
        x = f32[128,64]{1,0} parameter(0)
        w = f32[64,32]{1,0} parameter(1)
        d = f32[128,32]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        t = f32[4096]{0} reshape(d)
        e = f32[4096]{0} exponential(t)
        ROOT s = f32[4096]{0} sort(e), dimensions={0}, to_apply=less
    """)),
    "scale-after-product": Program("scale-after-product", "m d", hlo("(f32[512,64]{1,0}, f32[64,8]{1,0})->f32[512,8]{1,0}", """
        x = f32[512,64]{1,0} parameter(0)
        w = f32[64,8]{1,0} parameter(1)
        c = f32[] constant(0.125)
        k = f32[512,64]{1,0} broadcast(c), dimensions={}
        m = f32[512,64]{1,0} multiply(x, k)
        d = f32[512,8]{1,0} dot(m, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = f32[512,8]{1,0} exponential(d)
    """)),
    "scale-before-sum": Program("scale-before-sum", "s m", hlo("(f32[512,64]{1,0}, f32[512]{0})->f32[512]{0}", """
        x = f32[512,64]{1,0} parameter(0)
        y = f32[512]{0} parameter(1)
        z = f32[] constant(0)
        e = f32[512,64]{1,0} exponential(x)
        s = f32[512]{0} reduce(e, z), dimensions={1}, to_apply=sum
        ROOT m = f32[512]{0} multiply(s, y)
    """)),
    "pieces": Program("reduce-pieces", "c s", hlo("(f32[512,64]{1,0}, f32[512,64]{1,0})->f32[512]{0}", """
        x = f32[512,64]{1,0} parameter(0)
        y = f32[512,64]{1,0} parameter(1)
        z = f32[] constant(0)
        e = f32[512,64]{1,0} exponential(x)
        c = f32[512,128]{1,0} concatenate(e, y), dimensions={1}
        ROOT s = f32[512]{0} reduce(c, z), dimensions={1}, to_apply=sum
    """)),
    "choose": Program("choose-pieces", "c m", hlo("(f32[512,64]{1,0}, f32[512,64]{1,0}, f32[512,128]{1,0})->f32[512,128]{1,0}", """
        x = f32[512,64]{1,0} parameter(0)
        y = f32[512,64]{1,0} parameter(1)
        k = f32[512,128]{1,0} parameter(2)
        c = f32[512,128]{1,0} concatenate(x, y), dimensions={1}
        ROOT m = f32[512,128]{1,0} multiply(c, k)
    """)),
    "apply-pieces": Program("apply-to-pieces", "c m", hlo("(f32[512,64]{1,0}, f32[512,64]{1,0})->f32[512,128]{1,0}", """
        x = f32[512,64]{1,0} parameter(0)
        y = f32[512,64]{1,0} parameter(1)
        e = f32[512,64]{1,0} sort(x), dimensions={0}, to_apply=less
        c = f32[512,128]{1,0} concatenate(e, y), dimensions={1}
        m = f32[512,128]{1,0} negate(c)
        ROOT s = f32[512,128]{1,0} sort(m), dimensions={0}, to_apply=less
    """)),
    "reciprocal": Program("reciprocal", "d a", hlo(
        "(f32[512,64]{1,0}, f32[512]{0}, f32[512,64]{1,0})->(f32[512,64]{1,0}, f32[64,512]{1,0})", """
        x = f32[512,64]{1,0} parameter(0)
        v = f32[512]{0} parameter(1)
        y = f32[512,64]{1,0} parameter(2)
        b = f32[512,64]{1,0} broadcast(v), dimensions={0}
        d = f32[512,64]{1,0} divide(x, b)
        a = f32[512,64]{1,0} add(d, y)
        t = f32[64,512]{1,0} transpose(d), dimensions={1,0}
        n = f32[64,512]{1,0} negate(t)
        ROOT r = (f32[512,64]{1,0}, f32[64,512]{1,0}) tuple(a, n)
    """)),
    "sum-of-products": Program("sum-of-products", "d e", hlo("(f32[7,4]{1,0}, f32[4,8]{1,0})->f32[7,8]{1,0}", """
        x = f32[7,4]{1,0} parameter(0)
        w = f32[4,8]{1,0} parameter(1)
        d = f32[7,8]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = f32[7,8]{1,0} exponential(d)
    """)),
    "unmoved-tvm": Program("product-unmoved", "t d", hlo("(f32[64,128]{1,0}, f32[64,32]{1,0})->f32[128,32]{1,0}", """
        x = f32[64,128]{1,0} parameter(0)
        w = f32[64,32]{1,0} parameter(1)
        t = f32[128,64]{1,0} transpose(x), dimensions={1,0}
        ROOT d = f32[128,32]{1,0} dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """)),
    "mvbefore2": Program("movement-before", "e t", hlo("(f32[64,64]{1,0})->(f32[64,64]{1,0}, f32[64,64]{1,0})", """
        x = f32[64,64]{1,0} parameter(0)
        e = f32[64,64]{1,0} exponential(x)
        t = f32[64,64]{1,0} transpose(e), dimensions={1,0}
        a = f32[64,64]{1,0} add(e, t)
        ROOT r = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(a, e)
    """)),
    "twice": Program("duplicate-behind-barrier", "t a", hlo("(f32[64,64]{1,0}, f32[64,64]{1,0})->(f32[64,64]{1,0}, f32[64,64]{1,0})", """
        x = f32[64,64]{1,0} parameter(0)
        y = f32[64,64]{1,0} parameter(1)
        t = f32[64,64]{1,0} tanh(x), metadata={op_name="jit(f)/mlp/tanh" source_file="net.py" source_line=7}
        a = f32[64,64]{1,0} multiply(t, y), metadata={op_name="jit(f)/mlp/mul" source_file="net.py" source_line=8}
        s = f32[64,64]{1,0} transpose(t), dimensions={1,0}
        b = f32[64,64]{1,0} add(s, y)
        ROOT r = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(a, b)
    """)),
    "copied": Program("duplicate", "t a", hlo("(f32[64,64]{1,0}, f32[64,64]{1,0})->(f32[64,64]{1,0}, f32[64,64]{1,0})", """
        x = f32[64,64]{1,0} parameter(0)
        y = f32[64,64]{1,0} parameter(1)
        t = f32[64,64]{1,0} tanh(x)
        a = f32[64,64]{1,0} multiply(t, y)
        s = f32[64,64]{1,0} transpose(t), dimensions={1,0}
        b = f32[64,64]{1,0} add(s, y)
        ROOT r = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(a, b)
    """)),
    "fenced": Program("remove-barrier", "t f", hlo("(f32[64,64]{1,0})->f32[64,64]{1,0}", """
        x = f32[64,64]{1,0} parameter(0)
        t = f32[64,64]{1,0} negate(x)
        f = f32[64,64]{1,0} opt-barrier(t)
        ROOT a = f32[64,64]{1,0} multiply(f, x)
    """)),
    "fenced-two": Program("remove-barrier", "o a", hlo("(f32[64,64]{1,0})->(f32[64,64]{1,0}, f32[64,64]{1,0})", """
        x = f32[64,64]{1,0} parameter(0)
        t = f32[64,64]{1,0} negate(x)
        u = f32[64,64]{1,0} exponential(x)
        p = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(t, u)
        o = (f32[64,64]{1,0}, f32[64,64]{1,0}) opt-barrier(p)
        a = f32[64,64]{1,0} get-tuple-element(o), index=1
        b = f32[64,64]{1,0} get-tuple-element(o), index=0
        c = f32[64,64]{1,0} multiply(a, x)
        ROOT r = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(c, b)
    """)),
    "slice-of-sums": Program("slice-before", "s p", hlo("(f32[12,7,5]{2,1,0})->f32[3,2]{1,0}", """
        x = f32[12,7,5]{2,1,0} parameter(0)
        z = f32[] constant(0)
        s = f32[12,5]{1,0} reduce(x, z), dimensions={1}, to_apply=sum
        p = f32[3,2]{1,0} slice(s), slice={[2:11:3], [1:3]}
        ROOT n = f32[3,2]{1,0} negate(p)
    """)),
    "slice-of-batches": Program("slice-before", "d p", hlo("(f32[5,6,4]{2,1,0}, f32[4,5,8]{2,1,0})->f32[2,3,1]{2,1,0}", """
        x = f32[5,6,4]{2,1,0} parameter(0)
        w = f32[4,5,8]{2,1,0} parameter(1)
        d = f32[5,6,8]{2,1,0} dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}
        p = f32[2,3,1]{2,1,0} slice(d), slice={[1:3], [0:6:2], [7:8]}
        ROOT n = f32[2,3,1]{2,1,0} negate(p)
    """)),
    "copied-sum": Program("reduce-unmoved", "c s", hlo("(f32[12,7]{1,0})->f32[12]{0}", """
        x = f32[12,7]{1,0} parameter(0)
        z = f32[] constant(0)
        c = f32[12,7]{0,1} copy(x)
        ROOT s = f32[12]{0} reduce(c, z), dimensions={1}, to_apply=sum
    """)),
    "reduce-unmoved-in-order": Program("reduce-unmoved", "t s", hlo("(f32[6,4,3]{2,1,0})->f32[6,3]{1,0}", """
        x = f32[6,4,3]{2,1,0} parameter(0)
        z = f32[] constant(0)
        t = f32[4,6,3]{2,1,0} transpose(x), dimensions={1,0,2}
        ROOT s = f32[6,3]{1,0} reduce(t, z), dimensions={0}, to_apply=sum
    """)),
    "read-twice": Program("movement-before", "e t", hlo("(f32[8,8]{1,0})->(f32[8,8]{1,0}, f32[8,8]{1,0})", """
        x = f32[8,8]{1,0} parameter(0)
        e = f32[8,8]{1,0} exponential(x)
        t = f32[8,8]{1,0} transpose(e), dimensions={1,0}
        r = f32[8,8]{1,0} add(e, t)
        ROOT s = (f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(r, e)
    """)),
}

"""XLA's pass that makes Triton kernels of matrix products, before it fuses anything else.

The words and kernels are those that jaxlib 0.10.2 logged and made of these texts for an A100 (for floats of eight bits: an H100 too).
"""
from __future__ import annotations

import numpy as np
import pytest

from irscope.fusion.xla.gemm import carry, grow, products, worth
from irscope.fusion.xla.gemm.products import GemmSettings, Product, rewrite
from irscope.fusion.xla.gemm.rules import RULES
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation
from irscope.ops import hlo
from tests.fusion.xla_texts import ADD, module

DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
LESS = "less { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = pred[] compare(p, q), direction=LT }\n"
BIAS = f"""a = s8[512,256] parameter(0)
c = bf16[512,256] convert(a)
b = bf16[256,512] parameter(1)
d = bf16[512,512] dot(c, b), {DOT}
v = bf16[512] parameter(2)
vb = bf16[512,512] broadcast(v), dimensions={{1}}
s = bf16[512,512] add(d, vb)
z = bf16[] constant(0)
zb = bf16[512,512] broadcast(z), dimensions={{}}
ROOT r = bf16[512,512] maximum(s, zb)"""


def judged(text: str, device: str = "a100", settings: GemmSettings | None = None) -> tuple[Computation, list[Product]]:
    """The computation behind the pass, and what became of each product."""
    computation = Computation.of(module(text, ADD + LESS).main())
    return computation, rewrite(computation, DEVICES[device], settings or GemmSettings())


def kernels(text: str, device: str = "a100", settings: GemmSettings | None = None) -> list[str]:
    """For each kernel its opcodes without parameters, and what it reads."""
    found = []
    for fusion in judged(text, device, settings)[0].post_order():
        if fusion.body is not None:
            assert fusion.kind == "kCustom"
            inside = " ".join(i.op.name for i in fusion.body.post_order() if i.op is not hlo.parameter)
            found.append(f"{inside} of {' '.join(o.name for o in fusion.operands)}")
    return found


def words(text: str, device: str = "a100", settings: GemmSettings | None = None) -> dict[str, str]:
    """XLA's words for each instruction that stays outside, and for a product that becomes no kernel; the rule's name where it has none."""
    told: dict[str, str] = {}
    for product in judged(text, device, settings)[1]:
        if product.no is not None:
            told[product.dot.name] = product.no.words or product.no.rule.name
        for asked in product.asked:
            if asked.no is not None:
                told[(asked.consumer if asked.behind else asked.producer).name] = asked.no.words or asked.no.rule.name
    return told


def in_front(lines: str, of: str = "f32", rows: int = 64, inner: int = 64, right: bool = False) -> str:
    """A product of ``r``, the last of ``lines``, with a parameter, and nothing behind it; ``right`` puts ``r`` there, transposed."""
    sides = "dot(b, r), lhs_contracting_dims={1}, rhs_contracting_dims={1}" if right else f"dot(r, b), {DOT}"
    shape = f"{64},{rows}" if right else f"{rows},64"
    return f"{lines}\nb = {of}[{inner},64] parameter({lines.count('parameter(')})\nROOT d = {of}[{shape}] {sides}"


def behind(lines: str, of: str = "f32") -> str:
    """A product ``d`` of two parameters, and what follows it."""
    return f"a = {of}[64,64] parameter(0)\nb = {of}[64,64] parameter(1)\nd = {of}[64,64] dot(a, b), {DOT}\n{lines}"


def shared(front: str, rows: int, inner: int) -> str:
    """A conversion ``c`` to half the bytes in front of a product; ``front`` is what the program gives beside the product."""
    return f"""a = f32[{rows},{inner}] parameter(0)
c = bf16[{rows},{inner}] convert(a)
b = bf16[{inner},64] parameter(1)
d = bf16[{rows},64] dot(c, b), {DOT}
ROOT t = (bf16[{rows},64], {front}) tuple(d, {'a' if front[0] == 'f' else 'c'})"""


def cut(inner: int, other: str) -> str:
    """A slice of a value that is computed and read by ``other`` too, in front of a product that contracts ``inner``."""
    return f"""a = bf16[64,2048] parameter(0)
g = bf16[64,2048] exponential(a)
s = bf16[64,{inner}] slice(g), slice={{[0:64], [8:{inner + 8}]}}
b = bf16[{inner},64] parameter(1)
d = bf16[64,64] dot(s, b), {DOT}
n = bf16{other}
ROOT t = (bf16[64,64], bf16[64,2048]) tuple(d, n)"""


NEGATED = "[64,2048] negate(g)"
INPUT = "Not obviously profitable to fuse as input."
RIGHT = {"right": True}

FRONT = [
    ("a = f32[64,64,8] parameter(0)\nz = f32[] constant(0)\nr = f32[64,64] reduce(a, z), dimensions={2}, to_apply=add", {},
     "Reductions are not fused yet."),
    ("a = f32[61,64] parameter(0)\nz = f32[] constant(0)\nr = f32[64,64] pad(a, z), padding=0_3x0_0", {}, "Pads are not fused yet."),
    ("a = f32[64,64] parameter(0)\nr = f32[64,64] reverse(a), dimensions={0}", {}, "Unsupported opcode."),
    ("a = f64[64,64] parameter(0)\nr = f32[64,64] convert(a)", {}, "Unsupported input data type."),
    ("a = f32[64,64] parameter(0)\nr = f32[64,64] sign(a)", {}, "Unsupported elementwise operation."),
    ("a = f32[100,64] parameter(0)\ni = s32[] parameter(1)\nr = f32[64,64] dynamic-slice(a, i, i), dynamic_slice_sizes={64,64}", {},
     "gemm-dynamic-slice"),
    ("a = f32[96,10] parameter(0)\nq = f32[10,96] transpose(a), dimensions={1,0}\nr = f32[15,64] reshape(q)", {"rows": 15},
     "Unsupported bitcast"),
    ("a = f32[64,64] parameter(0)\nc = f32[64,64] parameter(1)\nr = f32[64,128] concatenate(a, c), dimensions={1}", {"inner": 128},
     "Unsupported concatenation."),
    ("a = f32[60,64] parameter(0)\nc = f32[64,64] parameter(1)\nr = f32[124,64] concatenate(a, c), dimensions={0}", {"rows": 124},
     "At least one operand of concatenation can not be perfectly tiled."),
    ("a = f32[64,64] parameter(0)\nr = f32[128,64] concatenate(a, a), dimensions={0}", {"rows": 128}, "Unsupported split of a dimension."),
    ("a = f32[64,64] parameter(0)\nc = f32[64,64] parameter(1)\nr = f32[64,64] multiply(a, c)", {}, INPUT),
]
"""Lines, the product that reads the last of them, and why it stays outside."""


@pytest.mark.parametrize(("lines", "product", "told"), FRONT, ids=[told for *_, told in FRONT])
def test_what_stays_in_front(lines: str, product: dict[str, int], told: str) -> None:
    text = in_front(lines, **product)  # type: ignore[arg-type]
    assert words(text)["r"] == told
    assert kernels(text) == ["dot of r b"]


FARTHER = [
    ("a = f32[64] parameter(0)\ns = f32[1] slice(a), slice={[3:4]}\nq = f32[] reshape(s)\nr = f32[64,64] broadcast(q), dimensions={}", {},
     "Slice to scalar is not implemented yet."),
    ("a = f32[64,2,64] parameter(0)\nc = f32[64,2,64] parameter(1)\ns = f32[128,2,64] concatenate(a, c), dimensions={0}\n"
     "r = f32[256,64] reshape(s)", {"rows": 256}, "Concatenations on split non-contracting dimensions are unsupported."),
    ("a = f32[70,64] parameter(0)\ns = f32[64,64] slice(a), slice={[3:67], [0:64]}\nq = f32[16,4,64] reshape(s)\nr = f32[64,64] reshape(q)",
     {}, "Slicing of fragmented dimension."),
    ("a = f32[4,20,64] parameter(0)\ns = f32[4,16,64] slice(a), slice={[0:4], [2:18], [0:64]}\nr = f32[64,64] reshape(s)", {},
     "Sliced non-major-most fragment."),
    ("a = f32[16,64] parameter(0)\ns = f32[16,4,64] broadcast(a), dimensions={0,2}\nr = f32[64,64] reshape(s)", {}, "Unsupported broadcast"),
    ("a = f32[4,16,64] parameter(0)\ns = f32[16,4,64] transpose(a), dimensions={1,0,2}\nr = f32[64,64] reshape(s)", {},
     "Transpose within a dimension."),
    ("a = f32[4,8,4,8,4] parameter(0)\ns = f32[4,4,4,8,8] transpose(a), dimensions={0,2,4,1,3}\nr = f32[64,64] reshape(s)", {},
     "2nd split of a splittable dimension."),
    ("a = f32[16,64,4] parameter(0)\ns = f32[16,4,64] transpose(a), dimensions={0,2,1}\nr = f32[64,64] reshape(s)", RIGHT,
     "Unsupported split of a dimension."),
    ("a = f32[64,64] parameter(0)\ns = f32[64,64] negate(a)\nc = f32[64,64] parameter(1)\nr = f32[128,64] concatenate(s, c), dimensions={0}",
     {"rows": 128}, "No fusion into concatenations or dynamic slice."),
    ("a = f32[1,1] parameter(0)\ns = f32[1,1] transpose(a), dimensions={1,0}\nq = f32[] reshape(s)\n"
     "r = f32[64,64] broadcast(q), dimensions={}", {}, "Cannot propagate further from trivial sized tensor"),
]
"""The same, where what stays outside is ``s`` and what reads it goes in."""


@pytest.mark.parametrize(("lines", "product", "told"), FARTHER, ids=[told for *_, told in FARTHER])
def test_what_stays_farther_in_front(lines: str, product: dict[str, int], told: str) -> None:
    text = in_front(lines, **product)  # type: ignore[arg-type]
    assert words(text) == {"s": told}
    assert "s" in kernels(text)[0].split(" of ")[1].split()


TAKEN = [
    ("a = f32[64,64] parameter(0)\nc = f32[128,64] parameter(1)\nr = f32[192,64] concatenate(a, c), dimensions={0}", {"rows": 192},
     "concatenate dot of a c b"),
    ("a = f32[70,80] parameter(0)\nr = f32[64,64] slice(a), slice={[3:67], [16:80]}", {}, "slice dot of a b"),
    ("a = f32[64] parameter(0)\ns = f32[16,4,64] broadcast(a), dimensions={2}\nr = f32[64,64] reshape(s)", {},
     "broadcast reshape dot of a b"),
    ("a = f32[16,64,4] parameter(0)\ns = f32[16,4,64] transpose(a), dimensions={0,2,1}\nr = f32[64,64] reshape(s)", {},
     "transpose reshape dot of a b"),
    ("a = f32[64,64] parameter(0)\nc = f32[64,64] parameter(1)\nr = f32[64,64] add(a, c)", {}, "add dot of a c b"),
    ("a = f32[16,16] parameter(0)\nn = f32[16,16] negate(a)\nq = f32[16,16] sine(n)\nr = f32[16,16] maximum(n, q)", {"rows": 16, "inner": 16},
     "negate sine maximum dot of a b"),
    ("a = f32[1,1] parameter(0)\nq = f32[] reshape(a)\nc = f32[64,1] broadcast(q), dimensions={}\nr = f32[1,64] transpose(c), dimensions={1,0}",
     {"rows": 1}, "reshape broadcast transpose dot of a b"),
    ("a = f32[32,70] parameter(0)\ns = f32[32,64] slice(a), slice={[0:32], [3:67]}\nq = f32[8,4,64] reshape(s)\nr = f32[32,64] reshape(q)",
     {"rows": 32}, "slice reshape reshape dot of a b"),
]


@pytest.mark.parametrize(("lines", "product", "kernel"), TAKEN, ids=[kernel for *_, kernel in TAKEN])
def test_what_goes_into_the_kernel_in_front(lines: str, product: dict[str, int], kernel: str) -> None:
    text = in_front(lines, **product)  # type: ignore[arg-type]
    assert kernels(text) == [kernel]
    assert words(text) == {}


BEHIND = [
    ("ROOT r = f64[64,64] convert(d)", "Unsupported output data type."),
    ("ROOT r = f32[3,64,64] broadcast(d), dimensions={1,2}", "Unsupported broadcast direction."),
    ("ROOT r = f32[32,64] slice(d), slice={[0:32], [0:64]}", "Unsupported slice direction."),
    ("c = f32[64,64] parameter(2)\nROOT r = f32[128,64] concatenate(d, c), dimensions={0}", "Unimplemented instruction."),
    ("n = f32[64,64] negate(a)\nROOT r = f32[64,64] add(d, n)", "Has multiple inputs - not properly analyzed yet."),
    ("v = f32[64] parameter(2)\nn = f32[64] negate(v)\nnb = f32[64,64] broadcast(n), dimensions={1}\nROOT r = f32[64,64] add(d, nb)",
     "Has multiple inputs - not properly analyzed yet."),
    ("ROOT r = (f32[64,64]) tuple(d)", "Unsupported instruction."),
]


@pytest.mark.parametrize(("lines", "told"), BEHIND, ids=[told for _, told in BEHIND])
def test_what_stays_behind(lines: str, told: str) -> None:
    assert words(behind(lines))["r"] == told
    assert kernels(behind(lines)) == ["dot of a b"]


def test_what_goes_into_the_kernel_behind() -> None:
    assert kernels(BIAS) == ["convert dot broadcast add constant broadcast maximum of a b v"]
    assert words(BIAS) == {}
    assert kernels(behind("n = f32[64,64] parameter(2)\nROOT r = f32[64,64] subtract(n, d)")) == ["dot subtract of a b n"]
    assert kernels(behind("v = f32[1] parameter(2)\nw = f32[1] negate(v)\ns = f32[] bitcast(w)\nsb = f32[64,64] broadcast(s), dimensions={}\n"
                          "ROOT r = f32[64,64] multiply(d, sb)")) == ["dot negate bitcast broadcast multiply of a b v"]


def test_a_product_that_is_read_twice_is_written() -> None:
    text = behind("n = f32[64,64] negate(d)\ne = f32[64,64] exponential(d)\nROOT t = (f32[64,64], f32[64,64]) tuple(n, e)")
    assert words(text) == {"n": "gemm-several-readers", "e": "gemm-several-readers"}
    assert kernels(text) == ["dot of a b"]


def test_a_value_that_both_sides_read_is_computed_twice() -> None:
    text = f"a = f32[64,64] parameter(0)\nn = f32[64,64] negate(a)\nROOT d = f32[64,64] dot(n, n), {DOT}"
    assert kernels(text) == ["negate negate dot of a a"]


def test_wider_results_go_in_where_nothing_else_could_take_them() -> None:
    sort = "c = f32[64,64] convert(d)\ns = f32[64,64] sort(c), dimensions={1}, to_apply=less\nROOT n = f32[64,64] negate(s)"
    assert words(behind(sort, "f16")) == {"c": "Not obviously profitable to fuse as output."}
    assert kernels(behind("c = f32[64,64] convert(d)\nROOT t = (f32[64,64]) tuple(c)", "f16")) == ["dot convert of a b"]
    assert kernels(behind("ROOT c = f32[64,64] convert(d)", "f16")) == ["dot convert of a b"]


def test_what_halves_the_bytes_goes_in_for_this_product_alone_or_for_1024_bytes() -> None:
    assert words(shared("bf16[64,64]", 64, 64))["c"] == INPUT
    assert words(shared("f32[64,64]", 64, 64))["c"] == INPUT
    assert kernels(shared("f32[16,32]", 16, 32)) == ["convert dot of a b"]
    assert words(shared("f32[19,27]", 19, 27))["c"] == INPUT
    assert worth.TOLERANCE == 1024


def test_a_slice_of_a_shared_value_is_cut_inside_up_to_1024_contracted() -> None:
    assert kernels(cut(1024, NEGATED)) == ["exponential slice dot of a b"]
    assert words(cut(1025, NEGATED))["s"] == INPUT
    assert words(cut(64, "[64,64] slice(g), slice={[0:64], [0:64]}").replace("64,2048]) tuple", "64,64]) tuple"))["s"] == INPUT
    assert worth.SHORT == 1024


def test_a_power_that_is_read_elsewhere_stays_outside() -> None:
    text = f"""a = f32[64,64] parameter(0)
e = f32[] constant(3)
eb = f32[64,64] broadcast(e), dimensions={{}}
r = f32[64,64] power(a, eb)
b = f32[64,64] parameter(1)
d = f32[64,64] dot(r, b), {DOT}
ROOT t = (f32[64,64], f32[64,64]) tuple(d, r)"""
    assert words(text)["r"] == "Not fusing power with multiple users because it may result in expensive op duplication."


def test_rows_are_split_at_one_size() -> None:
    text = in_front("""a = f16[6,8,4] parameter(0)
s = f16[6,4,8] transpose(a), dimensions={0,2,1}
p = f16[24,8] reshape(s)
c = f16[8,8,3] parameter(1)
u = f16[8,3,8] transpose(c), dimensions={0,2,1}
q = f16[24,8] reshape(u)
r = f16[24,8] maximum(p, q)""", "f16", 24, 8)
    assert words(text) == {"u": "Conflicting splits of splittable dimension"}
    assert kernels(text) == ["transpose reshape reshape maximum dot of a u b"]


def test_one_side_reads_four_arrays() -> None:
    lines = "\n".join(f"x{i} = f32[8,32] parameter({i})" for i in range(5)) + """
q1 = f32[8,32] add(x0, x1)
q2 = f32[8,32] add(x2, x3)
q3 = f32[8,32] add(q1, q2)
r = f32[8,32] subtract(q3, x4)"""
    assert words(in_front(lines, rows=8, inner=32)) == {"q2": "gemm-parameters"}
    assert kernels(in_front(lines, rows=8, inner=32)) == ["add add subtract dot of x0 x1 q2 x4 b"]
    assert grow.LIMIT == 4


def product(rows: int, inner: int, columns: int, of: str = "f32", gives: str = "f32", more: str = "") -> str:
    return f"""a = {of}[{rows},{inner}] parameter(0)
b = {of}[{inner},{columns}] parameter(1)
ROOT d = {gives}[{rows},{columns}] dot(a, b), {DOT}{more}"""


def test_products_below_100_elements_are_loops() -> None:
    assert words(product(3, 9, 8)) == {"d": "gemm-tiny"}
    assert kernels(product(3, 10, 7)) == ["dot of a b"]
    assert kernels(product(3, 9, 8, "s8", "s32")) == ["dot of a b"]
    assert products.SMALL == 100


@pytest.mark.parametrize(("text", "device", "told"), [
    (product(64, 64, 64, "c64", "c64"), "a100", "Unsupported output data type: Unsupported data type: c64"),
    (product(64, 64, 64, "s32", "s32"), "a100", "Dot operation does not support these signed integer types."),
    (product(64, 64, 64, "f64", "f32"), "a100", "Dot operation only supports F64 result type for F64 input type."),
    (product(64, 64, 64, "f8e4m3fn", "f32"), "a100", "Dot operation for F8E4M3FN is not supported before Hopper."),
    (product(64, 64, 64, "f8e4m3fn", "f32"), "h100", ""),
    (product(64, 64, 64, "f32", "f32", ", operand_precision={highest,highest}"), "a100", ""),
])
def test_products_that_triton_computes(text: str, device: str, told: str) -> None:
    assert words(text, device) == ({"d": told} if told else {})


def test_narrow_floats_are_read_from_hopper_on() -> None:
    lines = "a = f8e4m3fn[64,64] parameter(0)\nr = bf16[64,64] convert(a)"
    assert words(in_front(lines, "bf16")) == {"r": "Unsupported input data type."}
    assert kernels(in_front(lines, "bf16"), "h100") == ["convert dot of a b"]


def four_bits(batch: int, end: str) -> str:
    """A product of four bits by matrices of a batch that is the first or the last dimension of the array of four bits."""
    shape = "16,8,1024" if batch == 0 else "8,1024,16"
    return f"""a = s4[{shape}] parameter(0)
c = bf16[{shape}] convert(a)
b = bf16[16,1024,64] parameter(1)
{'ROOT ' if not end else ''}d = bf16[16,8,64] dot(c, b), lhs_batch_dims={{{batch}}}, lhs_contracting_dims={{{2 if batch == 0 else 1}}}, \
rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}
{end}"""


def test_four_bits_with_the_batch_last_are_not_read() -> None:
    assert kernels(four_bits(0, "")) == ["convert dot of a b"]
    assert words(four_bits(2, ""))["d"].startswith("Fusion is not possible because the parameter with the type S4")
    assert kernels(four_bits(2, "ROOT t = (bf16[16,8,64]) tuple(d)")) == ["convert dot of a b"]


def test_bare_products_become_kernels_by_default() -> None:
    assert words(product(64, 64, 64), settings=GemmSettings(any_product=False)) == {"d": "Pure Matmul"}
    assert kernels(product(64, 64, 64)) == ["dot of a b"]
    text = product(64, 64, 64, more=", algorithm=dot_tf32_tf32_f32")
    assert kernels(text, settings=GemmSettings(any_product=False)) == ["dot of a b"]


def test_every_rule_says_what_to_do_or_needs_no_edit() -> None:
    silent = {"gemm-pure", "gemm-tuple", "gemm-bitcast-convert", "gemm-trivial"}
    assert {rule.name for rule in RULES if not rule.way_out} == silent
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert carry.CONCATENATED == 64


def test_older_devices_run_no_triton() -> None:
    from dataclasses import replace
    computation = Computation.of(module(BIAS).main())
    assert rewrite(computation, replace(DEVICES["a100"], capability="sm_75")) == []


SPLIT = "a = f32[16,64,4] parameter(0)\ns = f32[16,4,64] transpose(a), dimensions={0,2,1}\nr = f32[64,64] reshape(s)\nb = f32[64,64] parameter(1)"
WHOLE = "r = f32[64,64] parameter(0)\nb = f32[64,64] parameter(1)"


def test_a_product_with_a_batch_splits_no_rows() -> None:
    text = """a = f32[2,16,64,4] parameter(0)
s = f32[2,16,4,64] transpose(a), dimensions={0,1,3,2}
r = f32[2,64,64] reshape(s)
b = f32[2,64,64] parameter(1)
ROOT d = f32[2,64,64] dot(r, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"""
    assert words(text) == {"s": "Unsupported split of a dimension."}


@pytest.mark.parametrize(("front", "told"), [(SPLIT, {}), (WHOLE, {"t": "Unsupported split of a dimension."})])
def test_rows_are_split_behind_the_product_as_in_front(front: str, told: dict[str, str]) -> None:
    text = f"{front}\nd = f32[64,64] dot(r, b), {DOT}\nq = f32[16,4,64] reshape(d)\nROOT t = f32[16,64,4] transpose(q), dimensions={{0,2,1}}"
    assert words(text) == told


def test_a_power_that_is_read_once_goes_in() -> None:
    lines = "a = f32[64,64] parameter(0)\ne = f32[] constant(3)\neb = f32[64,64] broadcast(e), dimensions={}\nr = f32[64,64] power(a, eb)"
    assert kernels(in_front(lines)) == ["constant broadcast power dot of a b"]


def test_a_slice_behind_a_reshape_of_a_shared_value_stays_outside() -> None:
    text = cut(64, NEGATED).replace("s = bf16[64,64] slice(g), slice={[0:64], [8:72]}",
                                    "q = bf16[128,1024] reshape(g)\ns = bf16[64,64] slice(q), slice={[0:64], [8:72]}")
    assert words(text)["s"] == INPUT


def test_a_repeated_parameter_is_no_second_array() -> None:
    lines = "a = f32[64,64] parameter(0)\nv = f32[64] parameter(1)\nvb = f32[64,64] broadcast(v), dimensions={1}\nr = f32[64,64] multiply(a, vb)"
    assert kernels(in_front(lines)) == ["broadcast multiply dot of a v b"]


def test_division_is_computed_in_f32_and_bf16() -> None:
    def divided(of: str) -> str:
        return in_front(f"a = {of}[64,64] parameter(0)\nc = {of}[64,64] parameter(1)\nr = {of}[64,64] divide(a, c)", of)
    assert kernels(divided("f32")) == kernels(divided("bf16")) == ["divide dot of a c b"]
    assert words(divided("f16")) == {"r": "Unsupported elementwise operation."}


def test_a_parameter_may_be_read_through_a_bitcast_behind() -> None:
    assert kernels(behind("n = f32[4096] parameter(2)\nm = f32[64,64] bitcast(n)\nROOT r = f32[64,64] add(d, m)")) == ["dot bitcast add of a b n"]


@pytest.mark.parametrize(("text", "told"), [
    ("a = f16[64,64] parameter(0)\nb = bf16[64,64] parameter(1)\nROOT d = f32[64,64] dot(a, b), " + DOT,
     "Dot operation only supports same types for lhs and rhs."),
    (product(64, 64, 64, "s8", "f32"), "Dot operation does not support floating point input and signed integer result types."),
    (product(64, 64, 64, "f32", "f32", ", algorithm=dot_any_f8_any_f8_f32"), "Unsupported dot algorithm: ALG_DOT_ANY_F8_ANY_F8_F32"),
    ("a = f32[64,4,64] parameter(0)\nb = f32[4,64,64] parameter(1)\nROOT d = f32[64,64] dot(a, b), lhs_contracting_dims={1,2}, "
     "rhs_contracting_dims={0,1}", "Exactly one contracting dimension is supported, got 1,2"),
    (product(64, 64, 64, "s16", "pred"), ""),
    (product(64, 64, 64, "s8", "s32"), ""),
    (product(64, 64, 64, "pred", "pred"), "Unsupported types: input=pred, result=pred"),
])
def test_products_that_are_refused_by_their_form(text: str, told: str) -> None:
    assert words(text, "h100") == ({"d": told} if told else {})


def test_two_kinds_of_floats_of_eight_bits_are_multiplied_with_each_other() -> None:
    text = f"a = f8e5m2[64,64] parameter(0)\nb = f8e4m3fn[64,64] parameter(1)\nROOT d = f32[64,64] dot(a, b), {DOT}"
    assert words(text, "h100") == {}


@pytest.mark.parametrize(("source", "result", "stays"), [
    ("f32[4,6]", "f32[24]", True), ("f32[4,6]", "f32[2,2,6]", True), ("f32[4,6]", "f32[3,8]", True), ("f32[4,1,6]", "f32[4,6]", True),
    ("f32[4,6]{0,1}", "f32[24]", False), ("f32[4,6]", "f32[24,1]", True), ("f32[4,6]", "f32[3,8]{0,1}", False),
    ("f32[4,6]{0,1}", "f32[2,2,6]{1,0,2}", True), ("f32[4,6]{0,1}", "f32[2,2,6]{0,1,2}", False), ("f32[1]", "f32[]", True)])
def test_a_reshape_that_moves_nothing_in_memory_is_a_bitcast(source: str, result: str, stays: bool) -> None:
    """Element by element: the offset in memory of each is the same on both sides."""
    root = Computation.of(module(f"x = {source} parameter(0)\nROOT r = {result} reshape(x)").main()).root
    assert carry.is_bitcast(root) is stays
    sides = [np.arange(root.elements).reshape([side.dims[d] for d in reversed(side.minor)])
             .transpose([side.minor[::-1].index(d) for d in range(len(side.dims))]).reshape(-1) for side in (root.operands[0], root)]
    assert (sides[0] == sides[1]).all() == stays

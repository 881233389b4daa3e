"""The policy xla-cpu: every rule with a case that it hits and one that it just lets pass."""
from __future__ import annotations

import pytest

from irscope.api import load
from irscope.fusion.xla import copies, cpu_rules, inplace
from irscope.lint.fusion import plans, remarks, version_of
from irscope.lint.verdicts import verdicts_of
from irscope.ops import hlo
from irscope.source import UserError
from tests.fusion.xla_texts import ADD, concatenation, many_reductions, many_slices, module, verdicts, why


def vector_product(size: int, dtype: str = "f32") -> str:
    """A matrix that is computed, times a vector of ``size`` elements."""
    return f"""
        m = {dtype}[4,{size}] parameter(0)
        n = {dtype}[4,{size}] negate(m)
        v = {dtype}[{size}] parameter(1)
        ROOT d = {dtype}[4] dot(n, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""


def update(start: int, read: int, size: int = 4, move: str = "slice") -> str:
    """A buffer of which ``size`` elements are read at ``read`` and written at ``start``."""
    taken = f"s = f32[{size}] slice(b), slice={{[{read}:{read + size}]}}" if move == "slice" else \
        f"t = s32[] constant({read})\n s = f32[{size}] dynamic-slice(b, t), dynamic_slice_sizes={{{size}}}"
    return f"""
        b = f32[16] parameter(0)
        {taken}
        n = f32[{size}] negate(s)
        i = s32[] constant({start})
        ROOT u = f32[16] dynamic-update-slice(b, n, i)"""


def binary(op: str, left: str, right: str) -> str:
    """An integer division whose result is read again and again; a side is ``x`` or a constant."""
    sides = {"x": "x", "c": "k"}
    return f"""
        x = s32[8] parameter(0)
        c = s32[] constant(3)
        k = s32[8] broadcast(c), dimensions={{}}
        d = s32[8] {op}({sides[left]}, {sides[right]})
        ROOT b = s32[8,4] broadcast(d), dimensions={{0}}"""


def repeated(op: str, dtype: str = "f32", source: str = "f32") -> str:
    """A unary operation whose result is repeated."""
    return f"""
        x = {source}[8] parameter(0)
        e = {dtype}[8] {op}(x)
        ROOT b = {dtype}[8,4] broadcast(e), dimensions={{0}}"""


def read_twice(op: str, dtype: str = "f32", source: str = "f32") -> str:
    """A unary operation with two readers that end in different kernels."""
    return f"""
        x = {source}[8] parameter(0)
        e = {dtype}[8] {op}(x)
        a = {dtype}[8] negate(e)
        b = {dtype}[8] abs(e)
        ROOT t = ({dtype}[8], {dtype}[8]) tuple(a, b)"""


CUSTOM = "body { p = f32[4] parameter(0)\n ROOT n = f32[4] negate(p) }\n"

CASES: list[tuple[str, str, str, str]] = [
    # library calls
    ("x = f32[4] parameter(0)\n a = f32[4] exponential(x)\n ROOT f = f32[4] fusion(a), kind=kCustom, calls=body", "a f", "library-call",
     CUSTOM),
    ("x = f32[4] parameter(0)\n a = f32[4] exponential(x)\n ROOT f = f32[4] fusion(a), kind=kLoop, calls=body", "a f", "fused", CUSTOM),
    # what loops can compute
    ("x = f32[4] parameter(0)\n s = f32[4] sort(x), dimensions={0}, to_apply=less\n ROOT n = f32[4] negate(s)", "s n", "not-loop-fusible",
     "less { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = pred[] compare(p, q), direction=LT }\n"),
    ("x = f32[4] parameter(0)\n s = f32[4] reverse(x), dimensions={0}\n ROOT n = f32[4] negate(s)", "s n", "fused", ""),
    # concatenations
    (concatenation(8, 4, 0), "n0 c", "fused", ""),
    (concatenation(9, 4, 0), "n0 c", "concatenate", ""),
    (concatenation(9, 4, 0), "c r", "concatenate", ""),
    (concatenation(1, 15, 1, rows=200), "n0 c", "fused", ""),
    (concatenation(1, 16, 1, rows=31), "n0 c", "fused", ""),
    (concatenation(1, 16, 1, rows=32), "n0 c", "concatenate", ""),
    (concatenation(1, 128, 0, rows=32), "n0 c", "fused", ""),
    # expensive, and read again
    (repeated("exponential"), "e b", "not-profitable", ""),
    (repeated("negate"), "e b", "fused", ""),
    (repeated("sine"), "e b", "fused", ""),
    (repeated("sine", "c64", "c64"), "e b", "not-profitable", ""),
    (repeated("convert", "bf16", "f32"), "e b", "not-profitable", ""),
    (repeated("convert", "f16", "f32"), "e b", "fused", ""),
    (repeated("convert", "f32", "bf16"), "e b", "fused", ""),
    ("x = f32[] parameter(0)\n a = f32[8] broadcast(x), dimensions={}\n ROOT b = f32[8,4] broadcast(a), dimensions={0}", "a b", "fused", ""),
    # XLA looks for the constant in the dividend
    (binary("divide", "x", "c"), "d b", "not-profitable", ""),
    (binary("divide", "c", "x"), "d b", "fused", ""),
    (binary("remainder", "x", "c"), "d b", "not-profitable", ""),
    # expensive, and read by two
    (read_twice("exponential"), "e a", "expensive-twice", ""),
    (read_twice("negate"), "e a", "fused", ""),
    (read_twice("convert", "f32", "bf16"), "e a", "fused", ""),
    # copies
    (many_slices(15), "p cut0", "fused", ""),
    (many_slices(16), "p cut0", "too-many-copies", ""),
    # reductions
    (many_reductions(6), "r0 m1", "fused", ADD),
    (many_reductions(7), "r0 m1", "too-many-reductions", ADD),
    # matrix times vector
    (vector_product(4095), "n d", "fused", ""),
    (vector_product(4096), "n d", "no-case", ""),
    (vector_product(16383, "s8"), "n d", "fused", ""),
    (vector_product(16384, "s8"), "n d", "no-case", ""),
    # in place
    (update(2, 2), "s n", "fused", ""),
    (update(2, 3), "n u", "fused", ""),
    (update(2, 3), "s n", "in-place", ""),
    (update(2, 2, move="dynamic-slice"), "s n", "fused", ""),
    (update(2, 3, move="dynamic-slice"), "s n", "in-place", ""),
    # the end of a computation
    ("x = f32[4] parameter(0)\n a = f32[4] negate(x)\n c = f32[4,4] dot(a, a), lhs_contracting_dims={}, rhs_contracting_dims={}\n"
     "ROOT r = (f32[4,4], f32[4]) tuple(c, a)", "a c", "no-case", ""),
]


@pytest.mark.parametrize("instructions, edge, rule, header", CASES, ids=[f"{i}-{c[2]}" for i, c in enumerate(CASES)])
def test_rules(instructions: str, edge: str, rule: str, header: str) -> None:
    assert why("xla-cpu", instructions, edge, header) == rule


def outcome() -> list[str]:
    return [why("xla-cpu", instructions, edge, header) for instructions, edge, _, header in CASES]


@pytest.mark.parametrize("place, name", [
    (cpu_rules, "MAX_CONCATENATED"), (cpu_rules, "MAX_REDUCTIONS"), (cpu_rules, "SMALL_VECTOR_BYTES"), (copies, "MAX_COPIES")])
@pytest.mark.parametrize("change", [-1, 1])
def test_every_threshold_matters(place: object, name: str, change: int, monkeypatch: pytest.MonkeyPatch) -> None:
    step = 4 if name == "SMALL_VECTOR_BYTES" else 1
    monkeypatch.setattr(place, name, getattr(place, name) + change * step)
    assert outcome() != [rule for _, _, rule, _ in CASES]


@pytest.mark.parametrize("name, left_out", [
    ("CPU_CHEAP", "negate"), ("CPU_CHEAP", "broadcast"), ("CHEAP_WHEN_REAL", "sine"), ("CPU_LOOP_FUSIBLE", "reverse"),
    ("CPU_LOOP_FUSIBLE", "slice")])
def test_every_table_matters(name: str, left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_rules, name, getattr(cpu_rules, name) - hlo.named(left_out))
    assert outcome() != [rule for _, _, rule, _ in CASES]


def test_a_large_operand_twice_is_all_or_nothing() -> None:
    text = """
        x = f32[64] parameter(0)
        y = f32[64] parameter(1)
        a = f32[64] add(x, y)
        n = f32[64] negate(a)
        s = f32[64] sort(a), dimensions={0}, to_apply=less
        ROOT t = (f32[64], f32[64]) tuple(n, s)"""
    less = "less { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = pred[] compare(p, q), direction=LT }\n"
    verdict = verdicts("xla-cpu", text, less)["a", "n"]
    assert verdict.reason == "operand can not be duplicated"
    assert "%s" in verdict.cause and "not found a fusible case" in verdict.cause
    assert verdict.cause
    one_small = text.replace("y = f32[64] parameter(1)", "z = f32[] parameter(1)\n y = f32[64] broadcast(z), dimensions={}")
    assert why("xla-cpu", one_small, "a n", less) == "fused"


def test_a_refusal_far_down_the_way_is_the_root_cause() -> None:
    text = """
        x = f32[64] parameter(0)
        y = f32[64] parameter(1)
        a = f32[64] add(x, y)
        n = f32[64] negate(a)
        v = f32[64] custom-call(n), custom_call_target="f"
        ROOT r = f32[64] multiply(a, v)"""
    verdict = verdicts("xla-cpu", text)["a", "n"]
    assert verdict.rule == "can-not-duplicate"
    assert "%v does not go into %r: Producer is not loop-fusible." in verdict.cause


def test_an_addition_goes_into_the_product_that_it_finishes() -> None:
    text = """
        m = f32[4,8] parameter(0)
        v = f32[8] parameter(1)
        z = f32[] parameter(2)
        c = f32[4] broadcast(z), dimensions={}
        d = f32[4] dot(m, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        a = f32[4] add(d, c)
        ROOT t = f32[4] tanh(a)"""
    assert why("xla-cpu", text, "a t") == "output-fused"
    from_memory = text.replace("z = f32[] parameter(2)", "").replace("broadcast(z), dimensions={}", "parameter(2)")
    assert why("xla-cpu", from_memory, "d a") == "fused"
    assert why("xla-cpu", from_memory.replace("add(d, c)", "multiply(d, c)"), "d a") == "can-not-duplicate"


def test_a_constant_alone_and_a_large_one_stay_outside() -> None:
    text = "x = f32[4] parameter(0)\n c = f32[4] constant({1, 2, 3, 4})\n a = f32[4] add(x, c)\n ROOT n = f32[4] negate(a)"
    assert why("xla-cpu", text, "a n") == "fused"
    made = verdicts_of(module(text), "xla-cpu")
    assert {v.names for v in made} == {("a", "n")}


def test_a_scalar_constant_is_written_into_the_kernel() -> None:
    text = "x = f32[4] parameter(0)\n c = f32[] constant(2)\n b = f32[4] broadcast(c), dimensions={}\n ROOT m = f32[4] multiply(x, b)"
    plan, = plans(module(text), "xla-cpu")
    assert [sorted(n.name for n in group.nodes) for group in plan.groups] == [["b", "c", "m"]]
    assert plan.decisions == [("b", "m"), ("c", "m")]
    large = "x = f32[4] parameter(0)\n c = f32[4] constant({1, 2, 3, 4})\n n = f32[4] negate(c)\n ROOT m = f32[4] multiply(x, n)"
    plan, = plans(module(large), "xla-cpu")
    assert [sorted(n.name for n in group.nodes) for group in plan.groups] == [["m", "n"]]


def test_the_root_is_fused_into_nothing() -> None:
    text = """
        x = f32[4] parameter(0)
        ROOT a = f32[4] negate(x)
        b = f32[4] exponential(a)
        k = token[] after-all()
        o = token[] outfeed(b, k), outfeed_shape=f32[4]"""
    assert why("xla-cpu", text, "a b") == "root"
    assert why("xla-cpu", text, "b o") == "consumer-not-fusible"


def test_a_fusion_of_the_text_takes_more_in_and_goes_nowhere() -> None:
    text = """
        x = f32[4] parameter(0)
        a = f32[4] exponential(x)
        f = f32[4] fusion(a), kind=kLoop, calls=body
        ROOT n = f32[4] tanh(f)"""
    made = {(v.graph.name, *v.names): v for v in verdicts_of(module(text, CUSTOM), "xla-cpu")}
    assert made["e", "a", "f"].fused == "all"
    assert made["e", "f", "n"].rule == "producer-is-fusion"  # fused, had the text not decided
    assert "already holds 1 fusion" in remarks(module(text, CUSTOM), "xla-cpu")[0]


OPTIMISED = """
    small { p = f32[8] parameter(0)
            q = f32[8] negate(p)
            ROOT x1 = f32[8] exponential(q) }
    large { p2 = f32[8] parameter(0)
            b2 = f32[8,16] broadcast(p2), dimensions={0}
            ROOT n2 = f32[8,16] negate(b2) }
"""


def test_kernels_of_the_text_are_explained_by_what_is_inside_them() -> None:
    text = """
        x = f32[8] parameter(0)
        f = f32[8] fusion(x), kind=kLoop, calls=small
        ROOT g = f32[8,16] fusion(f), kind=kLoop, calls=large"""
    verdict = verdicts("xla-cpu", text, OPTIMISED)["f", "g"]
    assert (verdict.fused, verdict.rule, verdict.reason) == ("none", "not-profitable", "Fusion is not profitable.")
    assert "%x1" in verdict.cause and "%b2" in verdict.cause


def test_a_wide_fusion_inside_is_told_in_its_own_computation() -> None:
    body = "body { p = f32[4] parameter(0)\n q = f32[4] exponential(p)\n ROOT n = f32[4] negate(q) }\n"
    text = "x = f32[4] parameter(0)\n ROOT f = f32[4] fusion(x), kind=kLoop, calls=body"
    made = verdicts_of(module(text, body), "xla-cpu")
    assert [(v.graph.name, *v.names, v.fused) for v in made] == [("body", "q", "n", "all")]


def test_nothing_is_fused_inside_what_a_reduction_applies() -> None:
    body = "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n a = f32[] abs(q)\n ROOT s = f32[] add(p, a) }\n"
    text = "x = f32[8,4] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[8] reduce(x, z), dimensions={1}, to_apply=add"
    assert verdicts_of(module(text, body), "xla-cpu") == []


def test_the_body_of_a_loop_is_a_computation_of_its_own() -> None:
    header = """
        body { p = f32[4] parameter(0)
               a = f32[4] exponential(p)
               ROOT b = f32[4] negate(a) }
        cond { q = f32[4] parameter(0)
               ROOT c = pred[] constant(false) }"""
    made = verdicts_of(module("x = f32[4] parameter(0)\n ROOT w = f32[4] while(x), condition=cond, body=body", header), "xla-cpu")
    assert [(v.graph.name, *v.names, v.fused) for v in made] == [("body", "a", "b", "all")]


def test_names_and_order_of_independent_lines_do_not_matter() -> None:
    text = many_slices(16)
    lines = text.split("\n")
    assert why("xla-cpu", "\n".join([lines[0], lines[1], *reversed(lines[2:18]), *lines[18:]]), "p cut0") == "too-many-copies"
    assert why("xla-cpu", text.replace("p ", "other ").replace("(p)", "(other)"), "other cut0") == "too-many-copies"


@pytest.mark.parametrize("words", inplace.WORDS)
def test_all_words_for_updates_in_place_have_a_rule(words: str) -> None:
    assert cpu_rules.IN_PLACE[words].words == words


def test_an_answer_names_its_version_and_says_when_the_text_is_early() -> None:
    assert version_of("xla-cpu") == "xla-cpu@jaxlib-0.12.0.1"
    early = load("HloModule m\nENTRY e {\n x = f32[4] parameter(0)\n ROOT l = f32[4] logistic(x)\n}\n").module()
    assert "before XLA's own rewriting (it has logistic)" in remarks(early, "xla-cpu")[0]
    late = load("HloModule m\nENTRY e {\n x = f32[4]{0} parameter(0)\n ROOT l = f32[4]{0} negate(x)\n}\n").module()
    assert remarks(late, "xla-cpu") == []


def test_a_device_belongs_to_the_gpu() -> None:
    with pytest.raises(UserError, match="means nothing"):
        verdicts_of(module("ROOT x = f32[4] parameter(0)"), "xla-cpu", "h100")


def test_a_text_without_what_decides_is_refused_with_the_reason() -> None:
    reading = load("HloModule m\nENTRY e {\n x = f32[4,4] parameter(0)\n y = f32[4,4] transpose(x)\n ROOT n = f32[4,4] negate(y)\n}\n")
    with pytest.raises(UserError, match="leaves out dimensions of %y"):
        verdicts_of(reading.module(), "xla-cpu")


def test_an_operand_that_a_fusion_does_not_use_is_no_trouble() -> None:
    text = """
        x = f32[4] parameter(0)
        a = f32[4] negate(x)
        b = f32[4] abs(x)
        ROOT f = f32[4] fusion(a, b), kind=kLoop, calls=two"""
    body = "two { p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n ROOT n = f32[4] tanh(p) }\n"
    made = {v.names: v.fused for v in verdicts_of(module(text, body), "xla-cpu")}
    assert made["a", "f"] == "all"


def test_a_kernel_of_the_text_that_takes_one_constant_twice_is_judged() -> None:
    text = """HloModule m, is_scheduled=true

update {
  a = s32[2,2] parameter(0)
  b = s32[1,2] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = s32[2,2] dynamic-update-slice(a, b, i, j)
}

ENTRY e {
  p = s32[2,2] parameter(0)
  new = s32[1,2] constant({{77, 77}})
  zero = s32[] constant(0)
  same = s32[2,2] bitcast(p)
  ROOT f = s32[2,2] fusion(same, new, zero, zero), kind=kLoop, calls=update
}
"""
    assert [(*v.names, v.fused) for v in verdicts_of(load(text).module(), "xla-cpu")] == [("same", "f", "all")]


def test_a_library_call_that_the_rewriting_makes_reads_its_operands() -> None:
    """XLA puts the sum into a YNNPACK fusion: the kernel reads what the call is given."""
    found = load("HloModule m, entry_computation_layout={(f32[64,128]{1,0})->f32[64]{0}}\n" + ADD +
                 "ENTRY e {\n x = f32[64,128]{1,0} parameter(0)\n z = f32[] constant(0)\n"
                 " s = f32[64]{0} reduce(x, z), dimensions={1}, to_apply=add\n ROOT r = f32[64]{0} negate(s)\n}\n").module()
    [plan] = plans(found, "xla-cpu@jaxlib-0.12.0.1")
    assert [([n.name for n in g.nodes], [n.name for n in g.inputs]) for g in plan.groups] == [(["z", "s"], ["x"]), (["r"], ["s"])]

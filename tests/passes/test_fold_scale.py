"""Scales of contractions go into fixed weights, and constants that are added to them are merged; the numbers stay."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.formats.hlo import print_module
from irscope.graph import Module
from irscope.passes import pass_named
from tests.lower.whole import entry, inputs_of, module_of, reference

GIVEN = """
    x = f32[2,3] parameter(0)
    v = f32[3,4] parameter(1)
    w = f32[3,4] constant({{1, 2, 3, 4}, {-1, 0.5, 2, 0}, {3, 1, -2, 0.25}})
    c = f32[4] constant({1, -2, 0.5, 3})
    cb = f32[2,4] broadcast(c), dimensions={1}
    e = f32[4] constant({2, 1, -1, 0.5})
    eb = f32[2,4] broadcast(e), dimensions={1}
    r = f32[2] constant({2, 3})
    rb = f32[2,4] broadcast(r), dimensions={0}
    k = f32[] constant(1.5)
    kb = f32[2,4] broadcast(k), dimensions={}
    q = f32[4] exponential(e)
    qb = f32[2,4] broadcast(q), dimensions={1}
    l = f32[] constant(0.5)
    lb = f32[2,4] broadcast(l), dimensions={}
    full = f32[2,4] constant({{1, 2, 3, 4}, {5, 6, 7, 8}})
    spread = f32[2,4] broadcast(full), dimensions={0,1}
    d = f32[2,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    g = f32[2,4] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""


def folded(text: str) -> Module:
    """The module after the pass, read from its text; the numbers stay."""
    module = module_of(text)
    made = module_of(print_module(pass_named("fold-scale").run(module)))
    arrays = inputs_of(module)
    for got, wanted in zip(reference(made, arrays), reference(module, arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    return made


def left(*lines: str) -> str:
    """The operators that still compute the result, of its shape."""
    named = [f"{line.partition(' ')[0]} = f32[2,4] {line.partition(' ')[2]}" for line in lines]
    made = folded(entry(GIVEN + "\n".join([*named[:-1], f"ROOT {named[-1]}"])))
    return " ".join(node.op.name for node in made.main().nodes if str(node.type) == "f32[2,4]" and node.op.name not in ("broadcast", "constant"))


@pytest.mark.parametrize(("lines", "operators"), [
    (("m multiply(d, cb)",), "dot"), (("m multiply(cb, d)",), "dot"), (("m multiply(d, kb)",), "dot"), (("m multiply(kb, d)",), "dot"),
    (("a add(d, eb)", "m multiply(a, cb)"), "dot add"), (("a add(eb, d)", "m multiply(cb, a)"), "dot add"),
    (("a add(d, eb)", "m multiply(a, kb)"), "dot add"), (("a add(d, kb)", "m multiply(a, cb)"), "dot add"),
    (("a add(d, kb)", "m multiply(a, lb)"), "dot add"), (("a subtract(d, eb)", "m multiply(a, cb)"), "dot subtract"),
    (("m multiply(d, cb)", "n multiply(m, kb)"), "dot"),
    (("m multiply(d, cb)", "a add(m, eb)", "n multiply(a, kb)", "b subtract(n, lb)", "o multiply(b, cb)"), "dot add"),
    (("a add(d, cb)", "b add(a, eb)", "m multiply(b, kb)"), "dot add"), (("m multiply(d, qb)",), "dot"),
    (("a add(d, rb)", "b add(a, cb)", "m multiply(b, kb)", "n multiply(m, lb)"), "dot add add"),
])
def test_scales_go_into_the_weights_and_into_what_is_added(lines: tuple[str, ...], operators: str) -> None:
    assert left(*lines) == operators


@pytest.mark.parametrize(("lines", "operators"), [
    (("a add(d, cb)", "b add(a, eb)"), "dot add"), (("a add(cb, d)", "b add(eb, a)"), "dot add"), (("a add(d, cb)", "b add(a, kb)"), "dot add"),
    (("a add(d, kb)", "b subtract(a, cb)"), "dot add"), (("a subtract(d, cb)", "b add(a, eb)"), "dot subtract"),
    (("a subtract(d, cb)", "b subtract(a, kb)"), "dot subtract"), (("a subtract(d, kb)", "b subtract(a, lb)"), "dot subtract"),
    (("a add(d, rb)", "b add(a, rb)"), "dot add"),
    (("a subtract(cb, d)", "b add(a, eb)"), "dot subtract add"), (("a add(d, cb)", "b subtract(eb, a)"), "dot add subtract"),
    (("a add(d, rb)", "b add(a, cb)"), "dot add add"), (("a add(d, full)", "b add(a, cb)"), "dot add add"),
    (("a add(d, cb)", "b add(a, full)"), "dot add add"), (("a add(d, cb)", "b add(a, eb)", "t multiply(a, b)"), "dot add add multiply"),
    (("t tanh(d)", "a add(t, cb)", "b add(a, eb)"), "dot tanh add add"), (("a add(g, cb)", "b add(a, eb)"), "dot add"),
])
def test_what_is_added_to_a_contraction_is_merged(lines: tuple[str, ...], operators: str) -> None:
    """Only what both sums broadcast alike, or one of them from a number; a value that is taken away from a constant stays."""
    assert left(*lines) == operators


@pytest.mark.parametrize(("lines", "operators"), [
    (("m multiply(g, cb)",), "dot multiply"), (("m multiply(d, rb)",), "dot multiply"), (("m multiply(d, full)",), "dot multiply"),
    (("m multiply(d, spread)",), "dot multiply"), (("m multiply(d, d)",), "dot multiply"), (("t tanh(d)", "m multiply(t, cb)"), "dot tanh multiply"),
    (("a subtract(eb, d)", "m multiply(a, cb)"), "dot subtract multiply"), (("a add(d, full)", "m multiply(a, cb)"), "dot add multiply"),
    (("a add(t, eb)", "m multiply(a, cb)"), "dot tanh add multiply"), (("m multiply(d, cb)", "a add(m, d)"), "dot multiply add"),
    (("a add(d, eb)", "m multiply(a, cb)", "b add(a, m)"), "dot add multiply add"), (("m divide(d, cb)",), "dot divide"),
])
def test_scales_that_stay(lines: tuple[str, ...], operators: str) -> None:
    """Of weights that are inputs, along other axes than the columns, of values that others read, behind other operators."""
    given = ("t tanh(d)", *lines) if "add(t" in lines[0] else lines
    assert left(*given) == operators


@pytest.mark.parametrize(("axis", "folds"), [(0, False), (1, False), (2, True)])
def test_a_product_of_batches_is_scaled_along_its_columns(axis: int, folds: bool) -> None:
    size = (2, 2, 4)[axis]
    made = folded(entry(f"""
        x = f32[2,2,3] parameter(0)
        z = f32[2,3,4] iota(), iota_dimension=2
        w = f32[2,3,4] exponential(z)
        s = f32[{size}] constant({{{', '.join(map(str, range(1, size + 1)))}}})
        sb = f32[2,2,4] broadcast(s), dimensions={{{axis}}}
        d = f32[2,2,4] dot(x, w), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
        ROOT m = f32[2,2,4] multiply(d, sb)"""))
    assert (made.main().result().op.name == "dot") is folds


def test_weights_whose_columns_come_first() -> None:
    made = folded(entry("""
        x = f32[2,3] parameter(0)
        w = f32[4,3] constant({{1, 2, 3}, {4, 5, 6}, {-1, 0, 1}, {0, 0.5, 2}})
        s = f32[4] constant({1, -2, 0.5, 3})
        sb = f32[2,4] broadcast(s), dimensions={1}
        d = f32[2,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
        m = f32[2,4] multiply(d, sb)
        ROOT t = (f32[2,4], f32[2,3]) tuple(m, x)"""))
    assert [n.op.name for n in made.main().nodes if str(n.type) == "f32[2,4]"] == ["dot"]


@pytest.mark.parametrize(("line", "folds"), [
    ("convolution(x, w), window={size=3}, dim_labels=b0f_0io->b0f", True),
    ("convolution(x, w), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=2", True),
    ("convolution(x, w), window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2", False),
])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_convolutions_are_scaled_along_their_features(line: str, folds: bool, axis: int) -> None:
    groups = "feature" in line
    batch = 1 if "batch_group" in line else 2
    size = (batch, 3, 4)[axis]
    made = folded(entry(f"""
        x = f32[2,5,2] parameter(0)
        z = f32[3,{1 if groups else 2},4] iota(), iota_dimension=2
        w = f32[3,{1 if groups else 2},4] exponential(z)
        s = f32[{size}] constant({{{', '.join(map(str, range(2, size + 2)))}}})
        sb = f32[{batch},3,4] broadcast(s), dimensions={{{axis}}}
        c = f32[{batch},3,4] {line}
        ROOT m = f32[{batch},3,4] multiply(c, sb)"""))
    assert (made.main().result().op.name == "convolution") is (folds and axis == 2)


@pytest.mark.parametrize(("weights", "scales", "folds"), [
    ("65504, 1", "1, 2", True), ("1, 65504", "1, 1.001", False), ("6.104e-5, 1", "1, 1", True), ("6.104e-5, 1", "0.5, 1", False),
    ("30000, 1", "1, 30000", True), ("30000, 1", "30000, 1", False), ("1, 2", "0, 1", True), ("0, 1", "1e-4, 1", True),
    ("1, 2", "inf, 1", False), ("1, 2", "nan, 1", False), ("nan, 2", "1, 1", False), ("inf, 2", "0, 1", False),
])
def test_each_channel_of_the_weights_holds_its_products(weights: str, scales: str, folds: bool) -> None:
    """The largest of a channel decides: it must stay finite and, unless it is 0, a normal number: at least 2**-14, at most 65504."""
    made = pass_named("fold-scale").run(module_of(entry(f"""
        x = f16[2,1] parameter(0)
        w = f16[1,2] constant({{{{{weights}}}}})
        d = f16[2,2] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        s = f16[2] constant({{{scales}}})
        b = f16[2,2] broadcast(s), dimensions={{1}}
        ROOT m = f16[2,2] multiply(d, b)""")))
    assert (made.main().result().op.name == "dot") is folds


@pytest.mark.parametrize("type", ["s32", "f8e4m3fn", "c64"])
def test_numbers_that_are_no_wide_floats_stay(type: str) -> None:
    one = "(1, 0)" if type == "c64" else "1"
    module = module_of(entry(f"""
        x = {type}[2,1] parameter(0)
        w = {type}[1,2] constant({{{{{one}, {one}}}}})
        d = {type}[2,2] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        k = {type}[] constant({one})
        b = {type}[2,2] broadcast(k), dimensions={{}}
        ROOT m = {type}[2,2] multiply(d, b)"""))
    assert [n.op.name for n in pass_named("fold-scale").run(module).main().nodes] == [n.op.name for n in module.main().nodes]


def test_modules_of_operators_that_are_no_primitives_stay() -> None:
    module = irscope.load("def @main(%x: Tensor[(2, 3), float32]) {\n  multiply(%x, 2f)\n}\n").module()
    assert pass_named("fold-scale").run(module) is module


@pytest.mark.parametrize("lines", [
    ("a = f32[2,4] multiply(d, cb)", "t = f32[2,4] tanh(a)", "m = f32[2,4] multiply(a, cb)", "ROOT o = f32[2,4] add(t, m)"),
    ("b = f32[2,4] add(d, cb)", "a = f32[2,4] add(b, cb)", "t = f32[2,4] tanh(a)", "m = f32[2,4] multiply(a, eb)", "ROOT o = f32[2,4] add(t, m)"),
], ids=["scaled", "joined"])
def test_what_others_read_is_not_computed_again(lines: tuple[str, ...]) -> None:
    made = folded(entry(GIVEN + "\n".join(lines)))
    assert [node.op.name for node in made.main().nodes].count("dot") == 1


def test_a_change_that_is_given_up_leaves_nothing_behind() -> None:
    """The product could be scaled along its columns, but what is added to it has another value for each row."""
    needed = "\n".join(line for line in GIVEN.splitlines() if line.split(" = ")[0].strip() in ("x", "w", "d", "r", "rb", "c", "cb"))
    made = pass_named("fold-scale").run(module_of(entry(needed + "\na = f32[2,4] add(d, rb)\nROOT m = f32[2,4] multiply(a, cb)")))
    assert [node.op.name for node in made.main().nodes if node.op.name not in ("parameter", "constant", "broadcast")] == ["dot", "add", "multiply"]

"""Each pass on its own example, and what it must leave alone."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.expand import bind_inputs, expand
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.registry import own_passes
from irscope.passes.split_constants import split_constants
from irscope.source import UserError
from tests.lower.whole import ADD, MAX, entry, inputs_of, module_of, reference


def after(name: str, text: str, exact: bool = True) -> list[str]:
    """The operators, without parameters and constants, that a pass leaves; the meaning must stay."""
    module = expand(module_of(text))
    made = pass_named("remove-dead").run(pass_named(name).run(module))
    arrays = inputs_of(module)
    for got, wanted in zip(reference(made, arrays), reference(module, arrays), strict=True):
        if exact:
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    return [n.op.name for n in made.main().nodes if n.op.name not in ("parameter", "constant")]


@pytest.mark.parametrize(("lines", "left"), [
    ("o = f32[] constant(1)\nb = f32[4] broadcast(o), dimensions={}\nROOT r = f32[4] multiply(x, b)", []),
    ("o = f32[] constant(0)\nb = f32[4] broadcast(o), dimensions={}\nROOT r = f32[4] add(b, x)", []),
    ("o = f32[] constant(0)\nb = f32[4] broadcast(o), dimensions={}\nROOT r = f32[4] subtract(x, b)", []),
    ("o = f32[] constant(0)\nb = f32[4] broadcast(o), dimensions={}\nROOT r = f32[4] subtract(b, x)", ["broadcast", "subtract"]),
    ("o = f32[] constant(8)\nb = f32[4] broadcast(o), dimensions={}\nROOT r = f32[4] divide(x, b)", ["broadcast", "multiply"]),
    ("o = f32[] constant(3)\nb = f32[4] broadcast(o), dimensions={}\nROOT r = f32[4] divide(x, b)", ["broadcast", "divide"]),
    ("n = f32[4] negate(x)\nROOT r = f32[4] negate(n)", []),
    ("w = f64[4] convert(x)\nROOT r = f32[4] convert(w)", []),
    ("w = bf16[4] convert(x)\nROOT r = f32[4] convert(w)", ["convert", "convert"]),
    ("a = f32[2,2] reshape(x)\nb = f32[2,2] transpose(a), dimensions={1,0}\nc = f32[2,2] transpose(b), dimensions={1,0}\n"
     "ROOT r = f32[4] reshape(c)", []),
    ("a = f32[1,4] reshape(x)\nb = f32[4,1] transpose(a), dimensions={1,0}\nROOT r = f32[4] reshape(b)", []),
    ("a = f32[1,4] reshape(x)\nb = f32[3,1,4] broadcast(a), dimensions={1,2}\nROOT r = f32[3,4] reshape(b)", ["broadcast"]),
    ("a = f32[3] slice(x), slice={[1:4]}\nROOT r = f32[1] slice(a), slice={[1:3:2]}", ["slice"]),
    ("a = f32[4] slice(x), slice={[0:4]}\nROOT r = f32[4] reverse(a), dimensions={0}", ["reverse"]),
    ("a = f32[1,4] reshape(x)\nROOT r = f32[1,4] reverse(a), dimensions={0}", ["reshape"]),
    ("ROOT r = f32[4] concatenate(x), dimensions={0}", []),
    ("z = f32[] constant(0)\nROOT r = f32[4] pad(x, z), padding=0_0", []),
    ("k = f32[] constant(2)\nb = f32[5,4] broadcast(k), dimensions={}\nROOT r = f32[5,4] rsqrt(b)", ["rsqrt", "broadcast"]),
])
def test_simplify_algebra(lines: str, left: list[str]) -> None:
    assert after("simplify-algebra", entry("x = f32[4] parameter(0)\n" + lines)) == left


def test_padding_goes_into_the_window_that_reads_it() -> None:
    assert after("simplify-algebra", entry("""
        x = f32[1,6,6,2] parameter(0)
        w = f32[3,3,2,4] parameter(1)
        z = f32[] constant(0)
        p = f32[1,8,9,2] pad(x, z), padding=0_0x1_1x1_2x0_0
        ROOT c = f32[1,6,7,4] convolution(p, w), window={size=3x3}, dim_labels=b01f_01io->b01f"""), exact=False) == ["convolution"]
    assert after("simplify-algebra", entry("""
        x = f32[6,6] parameter(0)
        low = f32[] constant(-inf)
        p = f32[8,8] pad(x, low), padding=1_1x1_1
        ROOT c = f32[3,3] reduce-window(p, low), window={size=3x3 stride=2x2}, to_apply=most""", MAX)) == ["reduce-window"]


def test_padding_that_a_window_sees_stays() -> None:
    assert after("simplify-algebra", entry("""
        x = f32[6,6] parameter(0)
        z = f32[] constant(0)
        low = f32[] constant(-inf)
        p = f32[8,8] pad(x, z), padding=1_1x1_1
        ROOT c = f32[3,3] reduce-window(p, low), window={size=3x3 stride=2x2}, to_apply=most""", MAX)) == ["pad", "reduce-window"]


def test_share_equal_shares_nodes_and_bodies() -> None:
    module = expand(module_of(entry("""
        x = f32[4] parameter(0)
        z = f32[] constant(0)
        a = f32[] reduce(x, z), dimensions={0}, to_apply=sum
        b = f32[] reduce(x, z), dimensions={0}, to_apply=again
        ROOT r = f32[] add(a, b)""", ADD + ADD.replace("sum", "again"))))
    made = pass_named("remove-dead").run(pass_named("share-equal").run(module))
    assert [n.op.name for n in made.main().nodes] == ["parameter", "constant", "reduce", "add"]
    assert len(made.graphs) == 2


def test_share_equal_knows_attributes_apart() -> None:
    assert after("share-equal", entry("""
        x = f32[4,4] parameter(0)
        a = f32[4,4] transpose(x), dimensions={1,0}
        b = f32[4,4] transpose(x), dimensions={0,1}
        c = f32[4,4] transpose(x), dimensions={1,0}
        t = f32[4,4] add(a, b)
        ROOT r = f32[4,4] add(t, c)""")) == ["transpose", "transpose", "add", "add"]


def folded(text: str, *weights: int) -> Module:
    module = expand(module_of(text))
    arrays = inputs_of(module)
    fixed = bind_inputs(module, {n: arrays[n] for n in weights})
    made = pass_named("fold-scale").run(pass_named("simplify-algebra").run(fixed))
    given = [a for n, a in enumerate(arrays) if n not in weights]
    for got, wanted in zip(reference(made, given), reference(module, arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4)
    return made


NORM = """
    x = f32[1,5,5,3] parameter(0)
    w = f32[3,3,3,8] parameter(1)
    b = f32[8] parameter(2)
    s = f32[8] parameter(3)
    o = f32[8] parameter(4)
    c = f32[1,5,5,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
    bb = f32[1,5,5,8] broadcast(b), dimensions={3}
    d = f32[1,5,5,8] add(c, bb)
    sb = f32[1,5,5,8] broadcast(s), dimensions={3}
    m = f32[1,5,5,8] multiply(d, sb)
    ob = f32[1,5,5,8] broadcast(o), dimensions={3}
    ROOT r = f32[1,5,5,8] add(m, ob)
"""


def test_normalisation_behind_fixed_weights_is_folded() -> None:
    made = folded(entry(NORM), 1, 2, 3, 4)
    behind = next(n for n in made.main().nodes if n.op.name == "convolution").index
    image = [n.op.name for n in made.main().nodes if str(n.type) == "f32[1,5,5,8]" and n.op.name != "broadcast"]
    assert image == ["convolution", "add"] and behind > 0


def test_normalisation_behind_weights_that_are_inputs_stays() -> None:
    made = folded(entry(NORM), 2, 3, 4)
    assert "multiply" in [n.op.name for n in made.main().nodes if str(n.type) == "f32[1,5,5,8]"]


def test_a_result_that_others_read_is_not_scaled() -> None:
    made = folded(entry(NORM.replace("ROOT r", "r") + "    ROOT t = (f32[1,5,5,8], f32[1,5,5,8]) tuple(r, d)\n"), 1, 2, 3, 4)
    assert "multiply" in [n.op.name for n in made.main().nodes if str(n.type) == "f32[1,5,5,8]"]


def test_a_dot_is_scaled_along_its_columns() -> None:
    made = folded(entry("""
        x = f32[4,6] parameter(0)
        w = f32[6,8] parameter(1)
        s = f32[8] parameter(2)
        d = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        sb = f32[4,8] broadcast(s), dimensions={1}
        ROOT m = f32[4,8] multiply(d, sb)"""), 1, 2)
    assert made.main().result().op.name == "dot"


@pytest.mark.parametrize(("weights", "product"), [
    ("f32[8,6]", "dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ("f32[8,3,2]", "dot(x, w), lhs_contracting_dims={1,2}, rhs_contracting_dims={1,2}"),
])
def test_weights_are_scaled_along_the_dimension_of_the_columns(weights: str, product: str) -> None:
    made = folded(entry(f"""
        x = f32[4,{weights[6:-1]}] parameter(0)
        w = {weights} parameter(1)
        s = f32[8] parameter(2)
        d = f32[4,8] {product}
        sb = f32[4,8] broadcast(s), dimensions={{1}}
        ROOT m = f32[4,8] multiply(d, sb)"""), 1, 2)
    assert made.main().result().op.name == "dot"


def test_rounding_by_two_additions_stays() -> None:
    made = folded(entry("""
        x = f32[4] parameter(0)
        k = f32[] constant(12582912)
        b = f32[4] broadcast(k), dimensions={}
        s = f32[4] add(x, b)
        ROOT r = f32[4] subtract(s, b)"""))
    assert [n.op.name for n in made.main().nodes if n.type == made.main().result().type and n.op.name != "broadcast"] \
        == ["parameter", "add", "subtract"]


def test_constants_are_split_from_what_needs_inputs() -> None:
    module = expand(module_of(entry("""
        x = f32[4] parameter(0)
        c = f32[2,2] constant({{1, 2}, {3, 4}})
        e = f32[2,2] exponential(c)
        f = f32[4] reshape(e)
        k = f32[] constant(2)
        h = f32[] add(k, k)
        b = f32[4] broadcast(h), dimensions={}
        m = f32[4] multiply(x, f)
        ROOT r = f32[4] add(m, b)""")))
    split = split_constants(module)
    assert split.early is not None and [n.name for n in split.nodes] == ["f"]
    values = reference(split.early, [])
    made = split.with_values(values)
    assert "exponential" not in [n.op.name for n in made.main().nodes]
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(reference(made, [x])[0], reference(module, [x])[0])


def test_nothing_is_split_where_there_is_nothing_to_gain() -> None:
    module = expand(module_of(entry("x = f32[4] parameter(0)\nk = f32[] constant(2)\nb = f32[4] broadcast(k), dimensions={}\n"
                                    "ROOT r = f32[4] add(x, b)")))
    assert split_constants(module).early is None


def test_passes_are_found_by_name() -> None:
    assert all(pass_named(name).name == name for name in own_passes())
    with pytest.raises(UserError, match="no pass"):
        pass_named("share-equals")

"""Attention in one kernel: any number of queries and keys, masks, heads where they lie; and what is not quite attention."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.expand import expand
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.schedule import AVX512
from irscope.lower.tile import If
from irscope.lower.traversal import walk
from tests.lower.running import check, compiled, entry

BODIES = """
mx { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] maximum(a, b) }
ad { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
"""


def attention(queries: int, keys: int, depth: int = 24, values: int = 40, mask: str = "", tail: str = "ROOT r = {o} negate(o)",
              empty: str = "") -> str:
    """Two batches, three heads, a scale; ``mask`` takes ``sc`` to ``x``, ``empty`` ``e`` and ``tb`` to ``p``; keys and values come as [batch, key, head, depth]."""
    s, m, o = f"f32[2,3,{queries},{keys}]", f"f32[2,3,{queries}]", f"f32[2,3,{queries},{values}]"
    return entry(f"""
      q = f32[2,{queries},3,{depth}] parameter(0)
      k = f32[2,{keys},3,{depth}] parameter(1)
      v = f32[2,{keys},3,{values}] parameter(2)
      qt = f32[2,3,{queries},{depth}] transpose(q), dimensions={{0,2,1,3}}
      kt = f32[2,3,{keys},{depth}] transpose(k), dimensions={{0,2,1,3}}
      vt = f32[2,3,{keys},{values}] transpose(v), dimensions={{0,2,1,3}}
      s = {s} dot(qt, kt), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,1}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}
      c = f32[] constant(0.2)
      cb = {s} broadcast(c), dimensions={{}}
      sc = {s} multiply(s, cb)
      {mask.format(s=s, q=queries, k=keys) or f"x = {s} copy(sc)"}
      low = f32[] constant(-inf)
      mr = {m} reduce(x, low), dimensions={{3}}, to_apply=mx
      lows = {m} broadcast(low), dimensions={{}}
      mm = {m} maximum(lows, mr)
      mb = {s} broadcast(mm), dimensions={{0,1,2}}
      d = {s} subtract(x, mb)
      e = {s} exponential(d)
      z = f32[] constant(0)
      t = {m} reduce(e, z), dimensions={{3}}, to_apply=ad
      tr = f32[2,3,{queries},1] reshape(t)
      tf = {m} reshape(tr)
      tb = {s} broadcast(tf), dimensions={{0,1,2}}
      {empty.format(s=s, m=m) or f"p = {s} divide(e, tb)"}
      o = {o} dot(p, vt), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,1}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{2}}
      {tail.format(o=o, s=s)}""", BODIES)


CAUSAL = """i = s32[{q},{k}] iota(), iota_dimension=0
      j = s32[{q},{k}] iota(), iota_dimension=1
      keep = pred[{q},{k}] compare(i, j), direction=GE
      kb = pred[2,3,{q},{k}] broadcast(keep), dimensions={{2,3}}
      far = f32[] constant(-inf)
      fb = {s} broadcast(far), dimensions={{}}
      x = {s} select(kb, sc, fb)"""
ADDED = """w = f32[2,{k}] parameter(3)
      wb = {s} broadcast(w), dimensions={{0,3}}
      x = {s} add(sc, wb)"""


@pytest.mark.parametrize(("queries", "keys"), [(32, 32), (48, 256), (17, 37), (1, 100), (130, 300), (64, 16)])
def test_sizes(queries: int, keys: int) -> None:
    check(attention(queries, keys), template="attention")


@pytest.mark.parametrize("mask", [CAUSAL, ADDED])
@pytest.mark.parametrize("size", [24, 70])
def test_masks(mask: str, size: int) -> None:
    program = check(attention(size, size, mask=mask), template="attention")
    assert len(program.kernels()) == 1


@pytest.mark.parametrize("values", [1, 7, 64])
def test_values_of_any_width(values: int) -> None:
    check(attention(20, 50, values=values))


def test_exact_precision_rounds_step_by_step() -> None:
    program = check(attention(32, 48), precision="exact")
    assert "attention" not in {k.schedule.get("template") for k in program.kernels()}


def test_weights_that_others_read_are_stored() -> None:
    text = attention(32, 48, tail="ROOT r = ({o}, {s}) tuple(o, p)")
    program, executable = compiled(text)
    assert "attention" not in {k.schedule.get("template") for k in program.kernels()}
    module = load(text).module()
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 32, 3, 24), (2, 48, 3, 24), (2, 48, 3, 40))]
    for got, expected in zip(executable(*arrays), flatten(evaluate(module.main(), arrays)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


EMPTY = """h = f32[] constant(-100)
      hb = {m} broadcast(h), dimensions={{}}
      none = pred[2,3,24] compare(mr, hb), direction=LT
      nb = pred{s0} broadcast(none), dimensions={{0,1,2}}
      zs = {s} broadcast(z), dimensions={{}}
      p0 = {s} divide(e, tb)
      p = {s} select(nb, zs, p0)""".replace("{s0}", "[2,3,24,24]")


@pytest.mark.parametrize("empty", ["", EMPTY])
def test_queries_without_any_key(empty: str) -> None:
    """They are not numbers, unless the text says that they are zeros, as torch does."""
    text = attention(24, 24, mask=ADDED, empty=empty)
    module = load(text).module()
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((2, 24, 3, 24), (2, 24, 3, 24), (2, 24, 3, 40), (2, 24))]
    arrays[3][1] = -np.inf
    with np.errstate(all="ignore"):
        (expected,) = flatten(evaluate(module.main(), arrays))
    program, executable = compiled(text)
    np.testing.assert_allclose(executable(*arrays)[0], expected, rtol=1e-5, atol=1e-5)
    assert "attention" in {k.schedule.get("template") for k in program.kernels()}
    assert np.isnan(expected[1]).all() == (not empty)


SWAPPED = {
    "as it is": "ROOT r = {t} negate(o)",
    "beside another": "w = {t} parameter(3)\n ROOT r = {t} add(o, w)",
    "transposed": "n = {t} negate(o)\n ROOT r = f32[2,{q},3,{v}] transpose(n), dimensions={{{{0,3,1,2}}}}",
}


@pytest.mark.parametrize("tail", SWAPPED)
@pytest.mark.parametrize(("queries", "keys", "values", "mask"), [(20, 50, 40, ""), (1, 33, 16, ""), (65, 40, 7, CAUSAL)])
def test_values_on_the_left(tail: str, queries: int, keys: int, values: int, mask: str) -> None:
    """jax writes the second product as values times weights; the results of a query are then a column."""
    t = f"f32[2,3,{values},{queries}]"
    text = attention(queries, keys, values=values, mask=mask, tail=SWAPPED[tail].format(t=t, q=queries, v=values))
    plain = (f"o = f32[2,3,{queries},{values}] dot(p, vt), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,1}}, "
             "lhs_contracting_dims={3}, rhs_contracting_dims={2}")
    assert plain in text
    swapped = f"o = {t} dot(vt, p), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,1}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{3}}"
    program = check(text.replace(plain, swapped), template="attention" if tail == "transposed" else "")
    assert "rows" not in {k.schedule.get("template") for k in program.kernels()} or tail != "transposed"


@pytest.mark.parametrize(("queries", "keys"), [(20, 50), (3, 33)])
def test_keys_that_lie_side_by_side_are_read_in_place(queries: int, keys: int) -> None:
    text = attention(queries, keys, mask=CAUSAL)
    for plain, turned in (("lhs_contracting_dims={3}, rhs_contracting_dims={3}", "lhs_contracting_dims={3}, rhs_contracting_dims={2}"),
                          (f"k = f32[2,{keys},3,24]", f"k = f32[2,24,3,{keys}]"), (f"kt = f32[2,3,{keys},24]", f"kt = f32[2,3,24,{keys}]")):
        assert text.count(plain) == 1
        text = text.replace(plain, turned)
    program = check(text, template="attention")
    [kernel] = program.kernels()
    assert kernel.flops == 2 * 2 * 3 * queries * keys * (24 + 40), "scores of vectors of 24, and sums of values of 40"
    scratch = [b for b in program.kernels()[0].buffers if b.scope == "scratch"]
    assert len(scratch) == 2, "scores and their sums, no packed keys"


@pytest.mark.parametrize(("queries", "keys", "several"), [(16, 37, False), (17, 37, False), (33, 600, False), (600, 3000, True)])
def test_only_queries_in_several_groups_need_conditions(queries: int, keys: int, several: bool) -> None:
    """Queries that walk the keys together are taken in blocks. Where all do, it is known which blocks are whole."""
    program = lower(expand(load(attention(queries, keys)).module()), Options(machine=AVX512))
    [kernel] = [k for k in program.kernels() if k.schedule.get("template") == "attention"]
    assert (kernel.schedule["queries"] < queries) == several == any(isinstance(s, If) for s in walk(kernel.body))

"""Attention over blocks of keys: the streaming softmax, masks that exclude blocks, infinities and NaN, any number of threads."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irscope
from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.fusion import Group
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import interpret_program
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.templates import attention as template
from irscope.lower.templates.masking import mask_of
from irscope.lower.tile import If
from irscope.lower.traversal import walk
from tests.lower.running import check, compiled, drawn, entry
from tests.lower.test_templates_attention import ADDED, BODIES, CAUSAL, EMPTY, attention

LOWEST = float(np.finfo(np.float32).min)
WINDOW = """i = s32[{q},{k}] iota(), iota_dimension=0
      j = s32[{q},{k}] iota(), iota_dimension=1
      w = s32[] constant(50)
      wb = s32[{q},{k}] broadcast(w), dimensions={{}}
      jw = s32[{q},{k}] add(j, wb)
      future = pred[{q},{k}] compare(j, i), direction=GT
      past = pred[{q},{k}] compare(jw, i), direction=LT
      drop = pred[{q},{k}] or(future, past)
      db = pred[2,3,{q},{k}] broadcast(drop), dimensions={{2,3}}
      far = f32[] constant(FILL)
      fb = {s} broadcast(far), dimensions={{}}
      x = {s} select(db, fb, sc)"""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 32 keys and of 64 queries at most, so that small programs have several."""
    monkeypatch.setattr(template, "MOST_KEYS", 32)
    monkeypatch.setattr(template, "FEWEST_KEYS", 32)
    monkeypatch.setattr(template, "MOST_QUERIES", 64)
    monkeypatch.setattr(template, "FEWEST_QUERIES", 8)


def built(text: str) -> Callable[[list[np.ndarray]], np.ndarray]:
    """The compiled program, in several blocks of keys; its results must be close to the reference's."""
    main = load(text).module().main()
    program, executable = compiled(text)
    assert {k.schedule.get("template") for k in program.kernels()} == {"attention"}
    assert all(k.schedule["keys"] == 32 for k in program.kernels())

    def run(arrays: list[np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            (expected,) = flatten(evaluate(main, arrays))
        found = executable(*arrays)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=5e-6)
        return found

    return run


@pytest.mark.parametrize(("queries", "keys", "values"), [(64, 64, 40), (17, 67, 7), (1, 33, 40), (150, 100, 40), (129, 49, 17)])
def test_any_number_of_keys(queries: int, keys: int, values: int) -> None:
    check(attention(queries, keys, values=values), template="attention")


@pytest.mark.parametrize(("mask", "queries", "keys"), [
    (CAUSAL, 100, 100), (CAUSAL, 70, 170), (ADDED, 100, 100), (WINDOW.replace("FILL", "-inf"), 70, 170),
    (WINDOW.replace("FILL", str(LOWEST)), 100, 100)], ids=["causal", "more keys", "added", "window", "window of the lowest"])
def test_masks(mask: str, queries: int, keys: int) -> None:
    program = check(attention(queries, keys, mask=mask), template="attention")
    assert len(program.kernels()) == 1


@pytest.mark.parametrize("mask", ["", CAUSAL, WINDOW.replace("FILL", "-1e9")])
def test_kernels_stay_within_their_buffers(mask: str) -> None:
    text = attention(11, 37, depth=3, values=5, mask=mask)
    module = load(text).module()
    arrays = drawn(module)
    found = interpret_program(compiled(text)[0], arrays)
    (expected,) = flatten(evaluate(module.main(), arrays))
    np.testing.assert_allclose(found[0].reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("empty", ["", EMPTY.replace("24", "100")])
def test_keys_that_are_masked_by_addition(empty: str) -> None:
    """Whole blocks before and behind the others, and every key of the second batch."""
    text = attention(100, 100, mask=ADDED, empty=empty)
    arrays = drawn(load(text).module())
    arrays[3][0, :40] = arrays[3][0, 90:] = arrays[3][1] = -np.inf
    found = built(text)(arrays)
    assert np.isfinite(found[0]).all() and (np.isnan(found[1]).all() if not empty else not found[1].any())


@pytest.mark.parametrize("mask", ["", CAUSAL, WINDOW.replace("FILL", str(LOWEST))])
def test_infinite_operands(mask: str) -> None:
    """Weights of 0 times an infinite value are no numbers, also in a block that the mask excludes."""
    text = attention(100, 100, mask=mask)
    run = built(text)
    for operand in range(3):
        for value in (np.nan, np.inf, -np.inf):
            arrays = drawn(load(text).module())
            arrays[operand][0, 70, 1, 3] = value
            found = run(arrays)
            assert np.isfinite(found[1]).all() and not np.isfinite(found[0]).all()


@pytest.mark.parametrize("fill", [LOWEST, -50.0, 60.0])
def test_scores_as_low_as_the_mask(fill: float) -> None:
    """A masked key has a weight wherever the scores of the others are not far above the mask."""
    text = attention(100, 100, mask=CAUSAL.replace("-inf", str(fill)))
    arrays = drawn(load(text).module())
    arrays[0][0] = np.abs(arrays[0][0]) * 30
    arrays[1][0] = -np.abs(arrays[1][0])
    arrays[0][1] *= 0 if fill != LOWEST else 1
    built(text)(arrays)


def test_scores_that_grow_and_fall() -> None:
    """Each block of keys moves the maximum by more than the exponential has room for, in either direction."""
    text = attention(64, 128)
    arrays = drawn(load(text).module())
    arrays[0][...] = np.abs(arrays[0])
    arrays[1][...] = 0.1 * arrays[1] + np.linspace(-60, 60, 128, dtype=np.float32)[None, :, None, None]
    arrays[1][1] = arrays[1][1, ::-1]
    built(text)(arrays)


def test_queries_that_share_keys() -> None:
    """Eight heads of queries walk the keys of one together, or by themselves where they are many."""
    for queries in (1, 5, 90):
        check(entry(f"""
          q = f32[2,8,{queries},16] parameter(0)
          k = f32[2,70,16] parameter(1)
          v = f32[2,70,24] parameter(2)
          s = f32[2,8,{queries},70] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{2}}
          low = f32[] constant(-inf)
          m = f32[2,8,{queries}] reduce(s, low), dimensions={{3}}, to_apply=mx
          mb = f32[2,8,{queries},70] broadcast(m), dimensions={{0,1,2}}
          d = f32[2,8,{queries},70] subtract(s, mb)
          e = f32[2,8,{queries},70] exponential(d)
          z = f32[] constant(0)
          t = f32[2,8,{queries}] reduce(e, z), dimensions={{3}}, to_apply=ad
          tb = f32[2,8,{queries},70] broadcast(t), dimensions={{0,1,2}}
          p = f32[2,8,{queries},70] divide(e, tb)
          ROOT o = f32[2,8,{queries},24] dot(p, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{1}}
          """, BODIES), template="attention")


@pytest.mark.parametrize("mask", ["", CAUSAL])
def test_threads_do_not_change_a_bit(mask: str) -> None:
    text = attention(300, 300, mask=mask)
    arrays = drawn(load(text).module())
    first, *others = (np.asarray(irscope.compile(text, threads=n)(*arrays)) for n in (1, 2, 5))
    assert all(other.tobytes() == first.tobytes() for other in others)


def test_code_and_scratch_do_not_grow_with_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    found = [compiled(attention(2048, keys, mask=CAUSAL))[1].compiled for keys in (8192, 65536)]
    few, many = (sum(len(code) for code in one.objects) for one in found)
    assert found[0].scratch == found[1].scratch < 1 << 20 and abs(many - few) < few // 20


ROW, COLUMN = np.indices((90, 90))
EXCLUDED = {
    "causal": (CAUSAL, ROW < COLUMN),
    "opposite": (CAUSAL.replace("select(kb, sc, fb)", "select(kb, fb, sc)"), ROW >= COLUMN),
    "window": (WINDOW.replace("FILL", "-inf"), (COLUMN > ROW) | (COLUMN + 50 < ROW)),
}


@pytest.mark.parametrize("name", EXCLUDED)
def test_excluded_blocks(name: str) -> None:
    """The blocks that are known to be excluded are those whose scores are all masked."""
    mask, masked = EXCLUDED[name]
    module = load(attention(90, 90, mask=mask)).module()
    (kernel,) = lower(module, Options()).kernels()
    assert any(isinstance(s, If) for s in walk(kernel.body))
    node = next(n for n in module.main().nodes if n.name == "x")
    found = mask_of(node, Group("attention", list(module.main().nodes), [node], []))
    assert found is not None and found.fill == -np.inf
    k = KernelBuilder("boxes")
    for rows in (range(8), range(8, 24), range(23, 24), range(70, 90)):
        for columns in (range(16), range(7, 9), range(24, 90), range(60, 80)):
            box = [(0, 0), (2, 2), (rows[0], rows[-1]), (columns[0], columns[-1])]
            assert found.excludes(k, box).value == masked[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1].all()


def test_masks_in_memory_exclude_nothing() -> None:
    """A kernel is shared by groups of the same structure, so it may not depend on what computed its inputs."""
    module = load(attention(24, 24, mask=CAUSAL)).module()
    nodes = module.main().nodes
    group = Group("attention", [n for n in nodes if n.name not in ("keep", "kb")], [nodes[-1]], [])
    assert mask_of(next(n for n in nodes if n.name == "x"), group) is None

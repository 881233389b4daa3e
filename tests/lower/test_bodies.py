"""Bodies on single values, operators that cannot run, tables and heads of loops in the proof of bounds, and loops in counts."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irscope
from irscope.graph.dtypes import F32, S32, S64
from irscope.lower.bounds import unproved
from irscope.lower.build import KernelBuilder
from irscope.lower.inline import NoScalarMeaning
from irscope.lower.interpret import interpret_kernel
from irscope.lower.tile import Expr
from irscope.lower.work import operations
from irscope.source import UserError
from tests.lower.whole import entry, module_of


def inlined(instructions: str, *values: float, header: str = "") -> list[float]:
    """The results of a body for f32 values."""
    graph = module_of(entry(instructions, header)).main()
    k = KernelBuilder("k")
    x = k.buffer("x", F32, (len(values),), "in")
    made = k.inline(graph, [k.load(x, i) for i in range(len(values))])
    out = k.buffer("out", F32, (len(made),), "out")
    for i, value in enumerate(made):
        k.store(out, i, k.convert(value, F32))
    found = np.zeros(len(made), np.float32)
    interpret_kernel(k.finish(), [np.array(values, np.float32), found])
    return [float(v) for v in found]


@pytest.mark.parametrize(("instructions", "values", "want"), [
    ("p = (f32[], (f32[], f32[]), f32[]) parameter(0)\n q = (f32[], f32[]) get-tuple-element(p), index=1\n"
     " a = f32[] get-tuple-element(q), index=1\n b = f32[] get-tuple-element(p), index=2\n c = f32[] get-tuple-element(p), index=0\n"
     " ROOT t = (f32[], f32[], f32[], (f32[], f32[])) tuple(a, b, c, q)", (1, 2, 3, 4), [3, 4, 1, 2, 3]),
    ("x = f32[] parameter(0)\n y = f32[] parameter(1)\n c = f32[] call(y, x), to_apply=less\n ROOT f = f32[] fusion(c, y), kind=kLoop, calls=less",
     (10, 3), [-10]),
    ("x = f32[] parameter(0)\n r = f32[1,1] reshape(x)\n b = f32[1,1,1] broadcast(r), dimensions={1,0}\n t = f32[1,1,1] transpose(b), dimensions={2,0,1}\n"
     " c = f32[1,1,1] copy(t)\n o = f32[1,1,1] opt-barrier(c)\n ROOT s = f32[] reshape(o)", (7,), [7]),
    ("x = f32[] parameter(0)\n i = f32[1] iota(), iota_dimension=0\n c = f32[1] constant({5})\n a = f32[1] add(i, c)\n r = f32[] reshape(a)\n"
     " ROOT m = f32[] multiply(r, x)", (3,), [15]),
    ("x = f32[] parameter(0)\n y = f32[] parameter(1)\n p = pred[] compare(x, y), direction=GT\n ROOT s = f32[] select(p, x, y)", (3, 8), [8]),
])
def test_bodies_on_single_values(instructions: str, values: tuple[float, ...], want: list[float]) -> None:
    assert inlined(instructions, *values, header="less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] subtract(a, b) }\n") == want


@pytest.mark.parametrize(("instructions", "message"), [
    ("x = f32[] parameter(0)\n b = f32[3] broadcast(x), dimensions={}\n ROOT s = f32[3] copy(b)", "main: %b = f32[3] broadcast(...) is not a single value"),
    ("x = f32[1,1] parameter(0)\n ROOT s = f32[1,1] cholesky(x)", "main: %s = f32[1,1] cholesky(...) has no meaning on single values"),
])
def test_bodies_that_have_no_meaning(instructions: str, message: str) -> None:
    k = KernelBuilder("k")
    with pytest.raises(NoScalarMeaning) as fault:
        k.inline(module_of(entry(instructions)).main(), [k.variable("x", F32)])
    assert str(fault.value) == message


def test_as_many_values_as_parameters() -> None:
    k = KernelBuilder("k")
    graph = module_of(entry("x = f32[] parameter(0)\n ROOT s = f32[] negate(x)")).main()
    with pytest.raises(ValueError, match="main takes 1 values, not 2"):
        k.inline(graph, [k.variable("x", F32), k.variable("y", F32)])


@pytest.mark.parametrize(("line", "why", "help"), [
    ("ROOT r = f32[3] rng(x, x), distribution=rng_uniform", "%r (rng) cannot run here: its numbers come from the hidden state of a device", "give the numbers"),
    ('ROOT r = f32[3] custom-call(x), custom_call_target="mine"', "%r (custom-call to 'mine') cannot run here: it calls into a library that irscope does not know",
     "run the graph before"),
    ("ROOT r = u64[2] rng-get-and-update-state(), delta=1", "%r (rng-get-and-update-state) cannot run here: it reads the hidden state", "give the state as an input"),
    ("k = token[] after-all()\n ROOT r = (f32[2], token[]) infeed(k)", "%r (infeed) cannot run here: it reads from a host queue", "give the value as an input"),
    ("k = token[] after-all()\n a = (f32[2], u32[], token[]) recv(k), channel_id=1\n ROOT r = (f32[2], token[]) recv-done(a), channel_id=1",
     "(recv", "run the part of the graph that is between sends and receives"),
])
def test_operators_that_cannot_run(line: str, why: str, help: str) -> None:
    with pytest.raises(UserError) as error:
        irscope.compile(entry(f"x = f32[] parameter(0)\n {line}"), threads=1)
    [finding] = error.value.findings
    assert why in finding.message and finding.help.startswith(help) and finding.code == "KRN001"
    assert error.value.message.endswith("cannot run")


def proof(write: Callable[[KernelBuilder], None]) -> list[str]:
    k = KernelBuilder("k", lanes=4)
    k.buffer("x", F32, (10,), "in")
    k.buffer("y", F32, (10,), "out")
    write(k)
    return [str(found) for found in unproved(k.finish())]


@pytest.mark.parametrize(("values", "want"), [([0, 9, 3], []), ([0, 10], ["load of x[0..10] is not shown to lie within 10 elements"]),
                                              ([4, -1], ["load of x[-1..4] is not shown to lie within 10 elements"]), ([9], [])])
def test_indices_from_a_table(values: list[int], want: list[str]) -> None:
    def write(k: KernelBuilder) -> None:
        x, y = k.kernel.buffers
        table = k.table(values, S64)
        with k.loop(0, len(values)) as i:
            k.store(y, 0, k.load(x, table.load([i])))
    assert proof(write) == want


def test_an_access_in_the_head_of_a_loop() -> None:
    def write(k: KernelBuilder, at: int) -> None:
        x, y = k.kernel.buffers
        with k.while_(lambda: k.compare("LT", k.load(x, at, here=True), 1.0)):
            k.store(y, 0, 1.0)
    assert proof(lambda k: write(k, 9)) == [] and proof(lambda k: write(k, 10)) == ["load of x[10] is not shown to lie within 10 elements"]


def test_masks_by_lane() -> None:
    def write(k: KernelBuilder, limit: int, scalar: bool = False) -> None:
        x, y = k.kernel.buffers
        with k.loop(0, 12, 4) as i:
            lanes = k.splat(i, 4) if scalar else k.binary("add", k.splat(i, 4), k.lane(4))
            mask = k.compare("LT", lanes, k.splat(k.index(limit), 4))
            k.store(y, i, k.load(x, i, 4, mask), mask)
    assert proof(lambda k: write(k, 10)) == [] and len(proof(lambda k: write(k, 11))) == 2
    assert proof(lambda k: write(k, 7, True)) == [] and len(proof(lambda k: write(k, 9, True))) == 2


def test_gathers_with_a_computed_mask() -> None:
    def write(k: KernelBuilder, limit: int) -> None:
        x, y = k.kernel.buffers
        n = k.buffer("n", S64, (4,), "in")
        at = k.load(n, 0, 4)
        inside = k.binary("and", k.compare("GE", at, k.splat(k.index(0), 4)), k.compare("LT", at, k.splat(k.index(limit), 4)))
        k.store(y, 0, k.gather(x, at, inside))
    assert proof(lambda k: write(k, 10)) == [] and len(proof(lambda k: write(k, 11))) == 1


def test_a_loop_that_never_runs_accesses_nothing() -> None:
    def write(k: KernelBuilder, count: int) -> None:
        x, y = k.kernel.buffers
        with k.loop(0, 3) as i, k.loop(i, i + count) as j:
            k.store(y, j + 8, k.load(x, j))
    assert proof(lambda k: write(k, 0)) == [] and len(proof(lambda k: write(k, 1))) == 1


@pytest.mark.parametrize(("low", "high", "want"), [
    (lambda k, i: i, lambda k, i: i + 4, 4), (lambda k, i: i * 2, lambda k, i: i * 3, 5), (lambda k, i: k.index(0), lambda k, i: i // 2, 2),
    (lambda k, i: k.index(0), lambda k, i: i % 3, 2), (lambda k, i: k.index(0), lambda k, i: k.binary("min", i, 3), 3),
    (lambda k, i: k.index(0), lambda k, i: k.binary("max", i, 7), 7), (lambda k, i: k.index(0), lambda k, i: 9 - i, 4),
    (lambda k, i: i, lambda k, i: i, 0)])
def test_loops_count_by_the_middle(low: Callable[[KernelBuilder, Expr], Expr], high: Callable[[KernelBuilder, Expr], Expr], want: int) -> None:
    """The outer loop runs 10 times, its middle is 5."""
    k = KernelBuilder("k")
    y = k.buffer("y", F32, (64,), "out")
    with k.loop(0, 10) as i, k.loop(low(k, i), high(k, i)) as j:
        k.store(y, j, 1.0)
    assert operations(k.finish()) == 10 * want


def test_what_counts() -> None:
    def count(write: Callable[[KernelBuilder, Expr, Expr], Expr]) -> float:
        k = KernelBuilder("k", lanes=4)
        x, y = k.buffer("x", F32, (8,), "in"), k.buffer("y", F32, (8,), "out")
        k.store(y, 0, write(k, k.load(x, 0, 4), k.load(x, 4)))
        return operations(k.finish())
    assert count(lambda k, v, s: v) == 4 and count(lambda k, v, s: s) == 1
    assert count(lambda k, v, s: k.binary("add", v, v)) == 8 and count(lambda k, v, s: k.fma(v, v, v)) == 4 + 8
    assert count(lambda k, v, s: k.reduce("add", v)) == 1 + 4 and count(lambda k, v, s: k.splat(s, 4)) == 4
    assert count(lambda k, v, s: k.select(k.compare("LT", v, v), v, v)) == 4
    assert count(lambda k, v, s: k.select(k.compare("LT", v, k.splat(s, 4)), v, k.unary("neg", v))) == 4 + 4 + 4
    assert count(lambda k, v, s: k.convert(k.convert(s, S32), F32)) == 1 + 2

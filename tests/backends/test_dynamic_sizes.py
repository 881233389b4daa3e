"""Programs whose sizes are known at run time only: compiled and by the reference, as XLA gives them, and as numpy gives them for what counts."""
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.backends.varying import reference_results
from irscope.source import UserError

FOLDER = Path(__file__).parents[1] / "data" / "dynamic"
ANSWERS = np.load(FOLDER / "answers.npz")  # tests/oracle/record_dynamic.py wrote it, with jaxlib 0.10.2
PROGRAMS = {m[1]: m[0] for m in re.finditer(r"^HloModule (\w+)\n(?:(?!^HloModule ).*\n?)*", (FOLDER / "programs.hlo").read_text(), re.MULTILINE)}

OTHERWISE = {
    "cholesky_batch": "XLA loses the size on the way through its expansion and sums the whole batch",
    "dynamic_reshape_run": "XLA writes beyond its buffer",
    "window_cumsum": "XLA takes the size of a running sum for negative, and dies",
}
"""Programs that XLA does not run as their text says."""
REFUSED = {
    "conv_spatial": "a dynamic spatial dimension is not supported",
    "custom_unknown": "'Foo' does not support a dynamic dimension",
    "topk_custom": "no rule for topk",
}


def arrays(name: str, kind: str) -> list[Any]:
    count = sum(key.startswith(f"{name}.{kind}") for key in ANSWERS.files)
    return [ANSWERS[f"{name}.{kind}{i}"] for i in range(count)]


def close(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in REFUSED])
def test_a_program_gives_what_xla_gives(name: str) -> None:
    reading = irscope.load(PROGRAMS[name])
    given = arrays(name, "arg")
    found = irscope.compile(reading, threads=1)(*given)
    for one, other in zip(found, reference_results(reading.module(), given), strict=True):
        assert close(one, other)
    if name not in OTHERWISE:
        for one, told in zip(found, arrays(name, "out"), strict=bool(arrays(name, "out"))):
            assert close(one, told.ravel()[:one.size].reshape(one.shape)), "of a buffer that XLA gives, the first elements count"


def test_most_programs_are_run_by_xla() -> None:
    assert sum(bool(arrays(name, "out")) for name in PROGRAMS if name not in OTHERWISE) >= 90


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(UserError) as error:
        irscope.compile(PROGRAMS[name], threads=1)
    finding, = error.value.findings
    assert REFUSED[name] in finding.message and finding.place() is not None and "%y" in finding.message


def compiled(body: str, before: str = "") -> Any:
    return irscope.compile(f"{before}\nENTRY e {{\n{body}\n}}\n", threads=1)


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
LESS = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = pred[] compare(a, b), direction=LT }\n"
SIZED = """  x = f32[5,6] parameter(0)
  n = s32[] parameter(1)
  m = s32[] parameter(2)
  h = f32[<=5,6] set-dimension-size(x, n), dimensions={0}
  d = f32[<=5,<=6] set-dimension-size(h, m), dimensions={1}
"""
OPERATORS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "sums": (SIZED + "  z = f32[] constant(0)\n  ROOT r = f32[<=6] reduce(d, z), dimensions={0}, to_apply=add", lambda x: x.sum(0)),
    "product": (SIZED + "  ROOT r = f32[<=5,<=5] dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={1}", lambda x: x @ x.T),
    "concatenation": (SIZED + "  ROOT r = f32[<=15,<=6] concatenate(d, d, d), dimensions={0}", lambda x: np.concatenate([x, x, x])),
    "reverse": (SIZED + "  ROOT r = f32[<=5,<=6] reverse(d), dimensions={0,1}", lambda x: x[::-1, ::-1]),
    "sort": (SIZED + "  ROOT r = f32[<=5,<=6] sort(d), dimensions={1}, to_apply=less", lambda x: np.sort(x, 1)),
    "reshape": (SIZED + "  ROOT r = f32[<=30] reshape(d)", lambda x: x.ravel()),
    "transpose of a reshape": (SIZED + "  t = f32[<=6,<=5] transpose(d), dimensions={1,0}\n  ROOT r = f32[<=30] reshape(t)", lambda x: x.T.ravel()),
    "dynamic reshape": (SIZED + "  ROOT r = f32[<=6,<=5] dynamic-reshape(d, m, n)", lambda x: x.reshape(x.shape[::-1])),
    "pad": (SIZED + "  v = f32[] constant(7)\n  ROOT r = f32[<=7,<=12] pad(d, v), padding=1_1x0_1_1",
            lambda x: np.pad(np.insert(x, range(1, x.shape[1]), 7, 1), ((1, 1), (0, 1)), constant_values=7)),
    "slice": (SIZED + "  ROOT r = f32[<=4,<=3] slice(d), slice={[1:5], [0:6:2]}", lambda x: x[1:5, 0:6:2]),
    "gather": (SIZED + "  i = s32[2] constant({1, 0})\n  ROOT r = f32[<=5,2] gather(d, i), offset_dims={0}, collapsed_slice_dims={1}, "
               "start_index_map={1}, index_vector_dim=1, slice_sizes={5,1}", lambda x: x[:, [1, 0]]),
    "size": (SIZED + "  a = s32[] get-dimension-size(d), dimensions={0}\n  b = s32[] get-dimension-size(d), dimensions={1}\n"
             "  ROOT r = s32[] multiply(a, b)", lambda x: np.int32(x.size)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_those_of_numpy_on_what_counts(name: str) -> None:
    body, meaning = OPERATORS[name]
    model = compiled(body, ADD + LESS)
    x = np.random.default_rng(3).standard_normal((5, 6)).astype(np.float32)
    for n, m in ((5, 6), (3, 4), (2, 6), (5, 2), (2, 2)):
        found, = model(x, np.int32(n), np.int32(m))
        assert close(found, meaning(x[:n, :m])), (n, m)


def test_inputs_of_bounded_shape_take_arrays_up_to_the_bound() -> None:
    model = compiled("  d = f32[<=6,2] parameter(0)\n  w = f32[2,3] parameter(1)\n"
                     "  ROOT y = f32[<=6,3] dot(d, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    rng = np.random.default_rng(0)
    w = rng.standard_normal((2, 3)).astype(np.float32)
    assert str(model.inputs[0]) == "d: f32[<=6,2]"
    for n in (1, 4, 6):
        x = rng.standard_normal((n, 2)).astype(np.float32)
        assert close(model(x, w)[0], x @ w)
        bound = model.bind([x, w])
        bound()
        assert close(bound.outputs[0], x @ w)
    with pytest.raises(ValueError, match="input 0 is d"):
        model(np.zeros((7, 2), np.float32), w)


def test_a_weight_may_be_shorter_than_its_bound() -> None:
    model = irscope.compile("ENTRY e {\n  x = f32[<=4] parameter(0)\n  w = f32[<=4] parameter(1)\n"
                            "  c = f32[<=8] concatenate(w, x), dimensions={0}\n  ROOT y = f32[<=8] negate(c)\n}\n",
                            weights={"w": np.array([1, 2], np.float32)}, threads=1)
    assert model(np.array([3, 4, 5], np.float32))[0].tolist() == [-1, -2, -3, -4, -5]


def test_pad_to_static_and_back() -> None:
    model = compiled("""  d = f32[<=3,<=4] parameter(0)
  p = (f32[3,4], s32[], s32[]) custom-call(d), custom_call_target="PadToStatic"
  x = f32[3,4] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  m = s32[] get-tuple-element(p), index=2
  y = f32[3,4] negate(x)
  ROOT r = f32[<=3,<=4] custom-call(y, n, m), custom_call_target="SliceToDynamic\"""")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert close(model(x)[0], -x)


def test_loops_in_loops_pass_sizes_on_without_recursion() -> None:
    depth = 300
    turn = "t{i} {{ p = (f32[<=4], s32[]) parameter(0)\n d = f32[<=4] get-tuple-element(p), index=0\n i = s32[] get-tuple-element(p), index=1\n" \
           " one = s32[] constant(1)\n k = s32[] add(i, one)\n z = s32[] constant(0)\n{inner}" \
           " ROOT r = (f32[<=4], s32[]) tuple({value}, k) }}\n"
    test = "c { p = (f32[<=4], s32[]) parameter(0)\n i = s32[] get-tuple-element(p), index=1\n one = s32[] constant(1)\n" \
           " ROOT r = pred[] compare(i, one), direction=LT }\n"
    bodies = [test, turn.format(i=0, inner=" n = f32[<=4] negate(d)\n", value="n")]
    for i in range(1, depth):
        inner = f" q = (f32[<=4], s32[]) tuple(d, z)\n w = (f32[<=4], s32[]) while(q), condition=c, body=t{i - 1}\n" \
                " n = f32[<=4] get-tuple-element(w), index=0\n"
        bodies.append(turn.format(i=i, inner=inner, value="n"))
    from irscope.expand import expand
    from irscope.expand.dynamic import is_dynamic, pad_dynamic

    text = "".join(bodies) + f"ENTRY e {{ x = f32[<=4] parameter(0)\n z = s32[] constant(0)\n q = (f32[<=4], s32[]) tuple(x, z)\n" \
        f" w = (f32[<=4], s32[]) while(q), condition=c, body=t{depth - 1}\n ROOT r = f32[<=4] get-tuple-element(w), index=0 }}\n"
    made = pad_dynamic(expand(irscope.load(text).module()))
    assert not is_dynamic(made) and sum(n.op.name == "while" for g in made.graphs.values() for n in g.nodes) >= depth

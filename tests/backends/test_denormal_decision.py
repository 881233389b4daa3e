"""Whether denormals count as zeros is a property of the module, and compiled code and the reference agree on all of its results."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irscope
from irscope.analysis.reference import results
from irscope.backends.comparison import Allowed, compare
from irscope.graph import DTYPES, Module
from tests.conftest import Cli

Array = np.ndarray[Any, Any]
UNARY = ("abs", "negate", "sign", "exponential", "exponential-minus-one", "log", "log-plus-one", "sqrt", "rsqrt", "cbrt", "sine", "cosine", "tan",
         "tanh", "logistic", "floor", "ceil", "round-nearest-even", "erf")
BINARY = ("add", "subtract", "multiply", "divide", "power", "remainder", "atan2", "maximum", "minimum")
TOLERANCE = {"f32": 1e-5, "f64": 1e-12, "bf16": 1e-2, "f16": 2e-3}

TORCHSCRIPT = """graph(%x : Float(4, strides=[1], requires_grad=0, device=cpu)):
  %c : float = prim::Constant[value=0.5]()
  %a : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::mul(%x, %c)
  %l : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::log(%x)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%a, %l)
  return (%t)
"""


def values(name: str) -> Array:
    """Zeros, denormals, the smallest and largest normal floats, and some between."""
    dtype = DTYPES[name].numpy()
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    tiny, step, most = float(limits.tiny), float(limits.smallest_subnormal), float(limits.max)
    return np.array([0.0, -0.0, step, -step, tiny / 2, -tiny / 2, tiny - step, tiny, -tiny, tiny * 1.5, 0.5, -1.0, 2.0, most, -most / 2, np.inf,
                     -np.inf, np.nan]).astype(dtype)


def program(name: str, count: int) -> str:
    """All operators on vectors of a type: x alone, and x with y."""
    lines = [f"x = {name}[{count}] parameter(0)", f"y = {name}[{count}] parameter(1)"]
    kinds = [name] * (len(UNARY) + len(BINARY)) + ["pred", "f32", "s32"]
    lines += [f"one{i} = {name}[{count}] {op}(x)" for i, op in enumerate(UNARY)]
    lines += [f"two{i} = {name}[{count}] {op}(x, y)" for i, op in enumerate(BINARY)]
    lines += [f"c0 = pred[{count}] compare(x, y), direction=LT", f"c1 = f32[{count}] convert(x)", f"c2 = s32[{count}] convert(x)"]
    names = [*(f"one{i}" for i in range(len(UNARY))), *(f"two{i}" for i in range(len(BINARY))), "c0", "c1", "c2"]
    lines.append(f"ROOT t = ({', '.join(f'{k}[{count}]' for k in kinds)}) tuple({', '.join(names)})")
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached program was compiled under the decision of its format, which these tests replace."""
    monkeypatch.setenv("IRSCOPE_CACHE", "off")


@pytest.mark.parametrize("flush", [True, False], ids=["flushed", "kept"])
@pytest.mark.parametrize("name", ["f32", "f64", "bf16", "f16"])
def test_both_engines_read_the_same_decision(name: str, flush: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Module, "flushes_denormals", property(lambda module: flush))
    one = values(name)
    x, y = np.repeat(one, one.size), np.tile(one, one.size)
    text = program(name, x.size)
    compiled, wanted = irscope.compile(text)(x, y), results(irscope.load(text).module(), [x, y])
    for op, got, want in zip((*UNARY, *BINARY, "compare", "to f32", "to s32"), compiled, wanted, strict=True):
        a, b = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
        with np.errstate(all="ignore"):  # 1e-36: results of which a step that is a denormal was flushed
            near = np.abs(a - b) <= TOLERANCE[name] * np.abs(b) + 1e-36
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (near & np.isfinite(a) & np.isfinite(b))
        assert same.all(), [(op, x[i], y[i], a[i], b[i]) for i in np.flatnonzero(~same)[:3]]


@pytest.mark.parametrize("flush", [True, False], ids=["flushed", "kept"])
@pytest.mark.parametrize("product", [
    "f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "f32[2,3] convolution(x, y), window={}, dim_labels=bf_io->bf",
])
def test_products_read_the_same_decision(product: str, flush: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinity by a denormal is NaN where the denormal counts as zero."""
    monkeypatch.setattr(Module, "flushes_denormals", property(lambda module: flush))
    text = f"HloModule m\nENTRY e {{ x = f32[2,2] parameter(0)\n y = f32[2,3] parameter(1)\n ROOT r = {product} }}\n"
    x, y = np.array([[np.inf, 2], [1, 3]], np.float32), np.array([[1e-45, -1e-45, 1], [3, 3, 3]], np.float32)
    [want] = results(irscope.load(text).module(), [x, y])
    assert np.isnan(want[0, :2]).all() == flush and want[0, 2] == np.inf
    [got] = irscope.compile(text)(x, y)
    np.testing.assert_array_equal(got, want)


def test_a_torchscript_program_keeps_denormals_and_passes_its_check(cli: Cli, tmp_path: Path) -> None:
    path, given, out = tmp_path / "d.ts.txt", tmp_path / "d.npz", tmp_path / "o.npz"
    path.write_text(TORCHSCRIPT)
    x = np.array([1e-38, 1e-45, 1e-40, 1.0], np.float32)
    np.savez(given, arg0=x)
    run = cli("compile-and-run", path, "--inputs", given, "--check", "--save-outputs", out)
    assert run.exit_code == 0, run.stderr
    with np.load(out) as saved:
        assert saved["out0"].tolist() == (x * np.float32(0.5)).tolist()
        np.testing.assert_allclose(saved["out1"], np.log(x.astype(np.float64)), rtol=1e-6)


def test_hlo_flushes_as_xla_does() -> None:
    """What XLA of jaxlib 0.10.2 gives on a CPU for vectors of 8."""
    for name, tiny in (("f32", 1e-40), ("f64", 1e-310), ("bf16", 1e-40)):
        dtype = DTYPES[name].numpy()
        x, y = np.full(8, tiny).astype(dtype), np.full(8, 1.0).astype(dtype)
        got = dict(zip((*UNARY, *BINARY), irscope.compile(program(name, 8))(x, y), strict=False))
        wanted = {"log": -np.inf, "sqrt": 0, "rsqrt": np.inf, "divide": 0, "add": 1, "multiply": 0, "abs": x[0], "negate": -x[0], "floor": 0}
        assert {op: float(got[op][0]) for op in wanted} == {op: float(value) for op, value in wanted.items()}
        back = dict(zip((*UNARY, *BINARY), irscope.compile(program(name, 8))(y, x), strict=False))
        assert back["divide"][0] == np.inf and np.isnan(back["remainder"]).all() and back["power"][0] == 1


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "c64"])
def test_denormals_are_equal_to_zeros_where_they_count_as_such(dtype: str) -> None:
    numpy = DTYPES[dtype].numpy()
    tiny = 2.0 ** (-1040 if dtype == "f64" else -130)
    got, expected = np.array([tiny, -tiny, np.inf]).astype(numpy), np.array([0, 0, np.inf]).astype(numpy)
    assert got[0] != 0
    assert compare("out", got, expected, Allowed(flushed=True)).fault is None
    assert "2 of 2 values differ" in str(compare("out", got[:2], expected[:2]).fault)


HLO = """ENTRY e {
  x = f32[4] parameter(0)
  h = f32[] constant(0.5)
  b = f32[4] broadcast(h), dimensions={}
  s = f32[4] multiply(x, b)
  l = f32[4] log(x)
  n = f32[4] negate(x)
  e = f32[4] exponential(n)
  ROOT t = (f32[4], f32[4], f32[4]) tuple(s, l, e)
}"""
TINY = np.array([1e-38, 1e-40, 87.5, 100.0], np.float32)


def test_hlo_flushes_them_as_xla_does() -> None:
    scaled, log, exponential = irscope.compile(HLO)(TINY)
    assert scaled[:2].tolist() == [0, 0] and log[1] == -np.inf and exponential[2:].tolist() == [0, 0]


def test_exact_results_keep_them_as_numpy_does() -> None:
    wide = TINY.astype(np.float64)
    wanted = (TINY * np.float32(0.5), np.log(wide), np.exp(-wide))
    for got, want in zip(irscope.compile(HLO, precision="exact")(TINY), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=2e-45)
    assert (wanted[0][:2] > 0).all() and (wanted[2][2:] > 0).all()


@pytest.mark.parametrize("precision", ["exact", "default", "fast"])
def test_the_reference_follows_the_precision(precision: str) -> None:
    for engine in ("llvm", "reference"):
        result = irscope.run(HLO, irscope.RunOptions(precision=precision, engine=engine, check=True), inputs={"x": TINY})
        assert result.ok and bool(result.outputs[0][0]) == (precision == "exact")

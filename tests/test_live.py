"""``irscope.load`` of objects of a running program: fakes with the methods of jax's objects, and jax itself."""
from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import irscope
from irscope.source import UserError

TEXT = "HloModule jit_f\n\nENTRY main {\n  p = f32[2] parameter(0)\n  ROOT n = f32[2] negate(p)\n}\n"
DATA = Path(__file__).parent / "data" / "hlo_pb"
REPO = Path(__file__).parents[1]


class Lowered:
    """``jax.stages.Lowered``."""

    def __init__(self, text: str = TEXT, proto: bytes = b"") -> None:
        self.text, self.proto = text, proto

    def as_text(self, dialect: str | None = None) -> str:
        assert dialect == "hlo"
        return self.text

    def compile(self) -> Compiled:
        return Compiled()

    def compiler_ir(self, dialect: str | None = None) -> object:
        return SimpleNamespace(as_serialized_hlo_module_proto=lambda: self.proto, as_hlo_text=lambda: self.text)


class OldLowered(Lowered):
    """As releases had it whose ``as_text`` knew no HLO."""

    def as_text(self, dialect: str | None = None) -> str:
        raise ValueError(f"no dialect {dialect}")


class Compiled:
    """``jax.stages.Compiled``."""

    text: str | None = TEXT.replace("negate", "tanh")

    def as_text(self) -> str | None:
        return self.text

    def runtime_executable(self) -> object:
        return SimpleNamespace(hlo_modules=list)


class Traced:
    """``jax.stages.Traced``."""

    jaxpr = "{ lambda ; }"

    def lower(self) -> Lowered:
        return Lowered()


class Jitted:
    """What ``jax.jit`` returns."""

    def __init__(self, taken: list[tuple[object, ...]] | None = None) -> None:
        self.taken = taken if taken is not None else []

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise AssertionError("the function must not run")

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        self.taken.append((*args, *kwargs.items()))
        return Lowered()


class Exported:
    """``jax.export.Exported``."""

    in_avals: Sequence[object] = ("a", "b")
    in_tree = "tree"

    def mlir_module(self) -> str:
        return ("module @jit_f {\n  func.func public @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {\n"
                "    %0 = stablehlo.tanh %arg0 : tensor<?xf32>\n    return %0 : tensor<?xf32>\n  }\n}\n")

    def call(self, *args: object, **kwargs: object) -> object:
        return args


def ops(reading: irscope.Reading) -> list[str]:
    return [node.op.name for node in reading.module().main().nodes]


def test_what_jax_returns_is_read() -> None:
    assert ops(irscope.load(Lowered())) == ops(irscope.load(Traced())) == ops(irscope.load(OldLowered())) == ["parameter", "negate"]
    assert ops(irscope.load(Compiled())) == ["parameter", "tanh"]
    assert irscope.load(Lowered()).source.name == "<Lowered>" and irscope.load(Lowered(), name="step").source.name == "step"
    assert irscope.lint(irscope.load(Compiled()), irscope.LintOptions(isolated=True)).readable


def test_a_function_is_lowered_for_its_arguments() -> None:
    jitted = Jitted()
    assert ops(irscope.load(jitted, args=(1, 2), kwargs={"k": 3})) == ["parameter", "negate"]
    assert jitted.taken == [(1, 2, ("k", 3))]
    with pytest.raises(UserError, match="depends on its arguments") as error:
        irscope.load(jitted)
    assert "args=(x, y)" in error.value.help


def test_an_exported_program_is_read_as_its_stablehlo() -> None:
    reading = irscope.load(Exported())
    assert reading.format == "stablehlo" and ops(reading) == ["parameter", "tanh"]
    assert str(reading.module().main().params[0].type) == "f32[?]"


def test_an_exported_program_is_lowered_for_arguments_by_the_jax_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[object, ...]] = []
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(jit=lambda call: Jitted(taken)))
    assert ops(irscope.load(Exported(), args=("a", "b"))) == ["parameter", "negate"] and taken == [("a", "b")]
    monkeypatch.delitem(sys.modules, "jax")
    with pytest.raises(UserError, match="has not imported it"):
        irscope.load(Exported(), args=("a", "b"))


def test_a_keras_model_has_its_variables_as_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[object, ...]] = []
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(jit=lambda call: Jitted(taken), ShapeDtypeStruct=lambda shape, dtype: (shape, dtype)))
    model = SimpleNamespace(trainable_variables=[SimpleNamespace(value="w")], non_trainable_variables=[], stateless_call=print,
                            inputs=[SimpleNamespace(shape=(None, 8), dtype="float32")])
    assert ops(irscope.load(model)) == ["parameter", "negate"]
    assert taken == [(["w"], [], ((1, 8), "float32"))]
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(backend=SimpleNamespace(backend=lambda: "torch")))
    with pytest.raises(UserError, match="runs on torch"):
        irscope.load(model)


def test_elided_constants_come_from_the_proto() -> None:
    proto = gzip.decompress((DATA / "module_0004.jit_step.before_optimizations.hlo.pb.gz").read_bytes())
    reading = irscope.load(Lowered(TEXT.replace("negate(p)", "constant({...})"), proto))
    assert reading.format == "hlo-pb" and reading.ok


def test_other_objects_are_refused_by_name() -> None:
    with pytest.raises(UserError, match="Python function"):
        irscope.load(cast(Path, ops))
    with pytest.raises(UserError, match="of type int is no program"):
        irscope.load(cast(Path, 3))
    compiled = Compiled()
    compiled.text = None
    with pytest.raises(UserError, match="has no text"):
        irscope.load(compiled)


PROGRAM = """
import jax, jax.export, jax.numpy as jnp, numpy as np, irscope
W = np.linspace(0, 1, 5000, dtype=np.float32)
f = jax.jit(lambda x: jnp.tanh(x).sum() * W)
x = jnp.ones((3, 4))
objects = [f.lower(x), f.trace(x), f.lower(x).compile(), jax.export.export(f)(x)]
readings = [irscope.load(one) for one in objects] + [irscope.load(f, args=(x,))]
assert all(reading.ok and reading.modules for reading in readings), [r.findings for r in readings]
for reading in readings:
    names = {node.op.name for graph in reading.module().graphs.values() for node in graph.nodes}
    assert "tanh" in names, names
    literals = [node.attrs["literal"] for graph in reading.module().graphs.values() for node in graph.nodes if node.op.name == "constant"]
    assert not any(literal.elided for literal in literals)
try:
    irscope.load(f)
except irscope.UserError:
    print("fine")
"""


@pytest.mark.oracle
def test_jax_itself() -> None:
    """Every kind of object of the installed jax."""
    environment = {**os.environ, "PYTHONPATH": str(REPO), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([os.environ.get("PEERS_PYTHON", sys.executable), "-c", PROGRAM], capture_output=True, text=True, env=environment,
                          timeout=300, check=False)
    assert done.stdout == "fine\n", done.stderr[-2000:]

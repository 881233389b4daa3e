"""A text through everything: expanded, simplified, planned, lowered, verified, compiled, and compared with the reference on drawn inputs."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.backends.arguments import drawn
from irscope.backends.comparison import Allowed, compare
from irscope.backends.loaded_model import Model
from irscope.backends.model import compile_module, ports_of
from irscope.graph import Module, TensorType, TupleType, Type
from irscope.lower.options import Options
from irscope.lower.verify import verify_program
from tests.conftest import LARGE

Array = np.ndarray[Any, Any]


def module_of(text: str) -> Module:
    """The module of a text that must be sound."""
    reading = load(text)
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def inputs_of(module: Module, seed: int = 0) -> list[Array]:
    """Drawn arrays for all inputs."""
    ports = ports_of(module)[0]
    arrays = drawn(ports, range(len(ports)), seed)
    return [arrays[n] for n in range(len(ports))]


def reference(module: Module, arrays: Sequence[Array]) -> list[Array]:
    """What the reference interpreter gives."""
    values = iter(arrays)
    return [np.asarray(a) for a in flatten(evaluate(module.main(), [nested(p.type, values) for p in module.main().params]))]


def nested(type: Type, values: Any) -> Any:
    """Arrays put together as a type wants them."""
    if isinstance(type, TupleType):
        return tuple(nested(element, values) for element in type.elements)
    return next(values) if isinstance(type, TensorType) else None


def check(text: str, arrays: Sequence[Array] | None = None, weights: Sequence[int] = (), rtol: float | None = None, runs: int = 2) -> Model:
    """Compile a text and hold its outputs against the reference; twice, since the first run must leave nothing behind."""
    module = module_of(text)
    model: Model | None = None
    for run in range(runs):
        given = list(arrays) if arrays is not None else inputs_of(module, seed=run if not weights else 0)
        if model is None:
            model = compile_module(module, {n: given[n] for n in weights}, Options(), use_cache=False)
            assert model.program.arena_bytes <= LARGE or verify_program(model.program) == []  # small ones were verified when they were lowered
        got = model(*(a for n, a in enumerate(given) if n not in weights))
        expected = reference(module, given)
        assert len(got) == len(expected)
        for number, (g, e) in enumerate(zip(got, expected)):
            fault = compare(f"out{number}", g, e, Allowed(rtol)).fault
            assert fault is None, fault
    assert model is not None
    assert not model.interpreted_ops
    return model


def entry(instructions: str, header: str = "") -> str:
    """A module of one computation, behind other computations."""
    lines = "\n".join("  " + line.strip() for line in instructions.strip().splitlines())
    return f"HloModule m\n\n{header}\nENTRY main {{\n{lines}\n}}\n"


def templates(model: Model) -> list[str]:
    """The template that built each launch's kernel."""
    return [str(launch.kernel.schedule.get("template")) for launch in model.program.launches()]


ADD = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
MAX = "most { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\n"

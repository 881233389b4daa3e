"""A TorchScript text run twice: as machine code and by the reference; both must say the same."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irscope.api import load
from irscope.backends.model import compile_module, ports_of
from irscope.backends.opening import Bindings, opened
from irscope.graph import Module
from irscope.lower.options import Options
from tests.lower.whole import reference

Array = np.ndarray[Any, Any]


def graph(body: str, inputs: str = "%x : Tensor") -> str:
    """The text of a graph from its statements, the last of which is the return."""
    lines = [line for line in body.strip("\n").split("\n") if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join([f"graph({inputs}):", *("  " + line[indent:] for line in lines)]) + "\n"


def module_of(text: str) -> Module:
    reading = load(text, format="torchscript")
    assert reading.ok, [f.render() for f in reading.findings]
    return reading.module()


def primitive(text: str, arrays: Mapping[str, Array], weights: Mapping[str, Array] | None = None,
              constants: Mapping[str, Array] | None = None) -> Module:
    """The primitive graph of a text for these arrays."""
    def measure(part: Module, given: Mapping[str, Array]) -> int:
        return int(reference(part, [given[p.name] for p in ports_of(part)[0]])[0])
    return opened(module_of(text), Bindings(arrays, weights or {}, constants or {}), measure)


def run(text: str, weights: Mapping[str, Array] | None = None, constants: Mapping[str, Array] | None = None, **arrays: Any) -> list[Array]:
    """What a text gives for arrays by name."""
    inputs = {name: np.asarray(a) for name, a in arrays.items()}
    made = primitive(text, inputs, weights, constants)
    given = [{**inputs, **(weights or {})}[port.name] for port in ports_of(made)[0]]
    expected = reference(made, given)
    got = compile_module(made, {}, Options(threads=1), use_cache=False)(*given)
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype
        np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-6)
    return expected

"""Relay programs give what numpy and torch give: every program of tests/data/relay_programs.txt, read, expanded and run.

The expected arrays were computed with numpy 2 and torch 2.13. All programs run on the plain reading of the primitives; some run compiled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.analysis.reference import evaluate, flatten
from irscope.expand import expand
from irscope.formats.relay import print_module, read
from irscope.graph import Module
from irscope.source import SourceText
from tests.expand.relay_runs import primitive

DATA = Path(__file__).resolve().parent.parent / "data"
PROGRAMS = {
    name: text for name, _, text in (part.partition("\n") for part in (DATA / "relay_programs.txt").read_text().split("==== ")[1:])
}
ARRAYS = np.load(DATA / "relay_programs.npz")
KEYS = sorted(ARRAYS.files)
COMPILED = ["prog_lenet", "nn_conv2d_nhwc_hwio", "nn_max_pool2d_ceil", "qnn_dense_chain", "if_nested", "recursion", "topk_both"]


def arrays_of(name: str) -> tuple[dict[str, Any], list[Any]]:
    """Inputs by name, and the expected results in order."""
    mine = {key.split("/", 1)[1]: ARRAYS[key] for key in KEYS if key.startswith(name + "/")}
    outs = sorted((k for k in mine if k.startswith("out") and k[3:].isdigit()), key=lambda k: int(k[3:]))
    return {k: v for k, v in mine.items() if k not in outs}, [mine[k] for k in outs]


def module_of(name: str) -> Module:
    reading = read(SourceText(name, PROGRAMS[name]))
    assert reading.ok, [f.render() for f in reading.findings]
    return reading.module()


def check(got: list[Any], wanted: list[Any]) -> None:
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_primitives_of_a_program_compute_it(name: str) -> None:
    inputs, wanted = arrays_of(name)
    primitive = expand(module_of(name))
    values = evaluate(primitive.main(), _nested(primitive, inputs))
    check([np.asarray(a) for a in flatten(values)], wanted)


def _nested(module: Module, inputs: dict[str, Any]) -> list[Any]:
    return [inputs[p.name] for p in module.main().params]


@pytest.mark.parametrize("name", COMPILED)
def test_a_program_compiled(name: str) -> None:
    inputs, wanted = arrays_of(name)
    model = irscope.compile(PROGRAMS[name], threads=1)
    check(model(*_nested(module_of(name), inputs)), wanted)


@pytest.mark.parametrize("name", sorted(PROGRAMS)[::7])
def test_printed_as_primitives_it_reads_back_and_computes_the_same(name: str) -> None:
    inputs, wanted = arrays_of(name)
    reading = read(SourceText("printed", print_module(expand(module_of(name)))))
    assert reading.ok, [f.render() for f in reading.findings]
    primitive = expand(reading.module())
    check([np.asarray(a) for a in flatten(evaluate(primitive.main(), _nested(primitive, inputs)))], wanted)


def test_equal_reductions_share_one_body() -> None:
    made = primitive("""
        def @main(%x: Tensor[(4, 6), float32]) {
          %0 = sum(%x, axis=[1]);
          %1 = max(%x, axis=[1]);
          %2 = sum(%x, axis=[0]);
          (%0, %1, %2)
        }
    """)
    first, largest, second = (node.bodies[0] for node in made.main().nodes if node.op.name == "reduce")
    assert first is second and first is not largest
    assert list(made.graphs.values()) == [first, largest, made.main()]

"""Printing: reading it back gives the same graph, in XLA's form and in the input's, and XLA itself accepts it."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

from irscope.formats.hlo import print_module, read
from irscope.formats.hlo.dialect import HLO
from irscope.graph import Graph, Module, Node, tensor
from irscope.ops.attrs import Literal
from irscope.ops.registry import get
from irscope.source import SourceText
from tests.formats.hlo_same import difference
from tests.formats.hlo_texts import FORMS, FRAMES, MODULE
from tests.formats.test_hlo_reader import TEXTS, fine


@pytest.mark.parametrize("style", ["canonical", "input"])
@pytest.mark.parametrize("name", TEXTS)
def test_reads_back_the_same(name: str, style: str) -> None:
    module = fine(TEXTS[name])
    printed = print_module(module, style)
    again = fine(printed)
    if name == "elements" and style == "canonical":  # elements become instructions there
        assert [n.op.name for n in again.main().nodes] == [n.op.name for n in module.main().nodes]
        return
    assert difference(module, again) == "", printed
    assert print_module(again, style) == printed


def test_canonical_is_the_form_of_xla() -> None:
    assert print_module(fine(MODULE)) == MODULE


def test_input_keeps_the_style_of_the_input() -> None:
    for name in ("bare", "operand_types", "elements"):
        assert print_module(fine(FORMS[name]), "input").replace("\n\n", "\n") == FORMS[name]


def test_stack_frames_are_kept() -> None:
    printed = print_module(fine(FRAMES))
    assert "4 {" not in printed and printed.count("\nStackFrames\n") == 1
    again = fine(printed)
    assert [str(s) for s in again.call_stack(again.main().nodes[1])] == ["/src/lib/\"odd\" name.py:7:4", "/src/train.py:21:8", "/src/train.py:40:2"]


def test_what_a_pass_made_is_printed() -> None:
    """Names that HLO does not allow, values without a text, and attributes that belonged to another opcode."""
    import numpy as np
    source = fine(MODULE)
    made, graph = source.derived(), Graph("main <1>")
    x = graph.add(Node(get("parameter"), "x y", tensor("f32", 2), attrs={"number": 0}))
    graph.params.append(x)
    value = Literal.of(np.array([0.1, -0.0], np.float32), tensor("f32", 2))
    c = graph.add(Node(get("constant"), "f32", tensor("f32", 2), attrs={"literal": value}))
    old = next(n for n in source.main().nodes if n.name == "padded")
    graph.root = graph.add(Node(get("add"), "f32", tensor("f32", 2), (x, c), loc=old.loc, origin=(old,)))
    made.graphs, made.entry = {graph.name: graph}, graph.name
    text = print_module(made)
    assert text == ("HloModule jit_f, is_scheduled=true, replica_count=2\n\n"
                    "ENTRY %main__1_ (x_y: f32[2]) -> f32[2] {\n"
                    "  %x_y = f32[2] parameter(0)\n"
                    "  %v_f32 = f32[2] constant({0.1, -0.0})\n"
                    "  ROOT %v_f32.1 = f32[2] add(%x_y, %v_f32)\n"
                    "}\n")
    assert fine(text).main().nodes[1].attrs["literal"].value().tolist() == [np.float32(0.1), 0.0]


PARSE = "import sys; from jaxlib import _hlo; _hlo.hlo_module_from_text(sys.stdin.read())"


def accepted_by_xla(python: str, text: str) -> str:
    """Empty when XLA's parser takes the text, else what it says. A process of its own asks, because it may abort."""
    asked = subprocess.run([python, "-c", PARSE], input=text, text=True, capture_output=True)
    return f"{asked.returncode}: {asked.stderr[-500:]}" if asked.returncode else ""


@pytest.mark.oracle
@pytest.mark.parametrize("name", [n for n in TEXTS if n not in ("dynamic",)])
def test_xla_accepts_what_is_printed(name: str) -> None:
    python = os.environ.get("PEERS_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import jaxlib"], capture_output=True).returncode:
        pytest.fail("the oracle is XLA's own parser: install jax, or name a Python that has it in PEERS_PYTHON")
    assert accepted_by_xla(python, print_module(fine(TEXTS[name]))) == ""


def test_an_empty_module_prints() -> None:
    assert print_module(Module("m", HLO)) == "HloModule m\n"
    assert read(SourceText("t", "")).modules == []

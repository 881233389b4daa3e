"""Kernels that a fusion policy makes, framed in drawings."""
from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.cli.main import main
from irscope.graph import Module
from irscope.lint.fusion import plans
from irscope.lint.kernels import kernels_by_node
from irscope.query.choose import Wanted, choose
from irscope.render.drawing import DrawingOptions, view_of
from irscope.render.view import Box, Drawing

SAMPLES = Path(__file__).parents[2] / "samples"
TEXT = """HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64,512]{1,0} parameter(0)
  w = f32[512,512]{1,0} parameter(1)
  zero = f32[] constant(0)
  d = f32[64,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[64,512]{1,0} negate(d)
  a = f32[64,512]{1,0} abs(n)
  s = f32[64]{0} reduce(a, zero), dimensions={1}, to_apply=sum
  m = f32[64,512]{1,0} maximum(n, d)
  ROOT t = (f32[64]{0}, f32[64,512]{1,0}) tuple(s, m)
}
"""


def drawn(text: str, policy: str) -> Drawing:
    """The drawing of a text with the kernels of a policy."""
    reading = irscope.load(text)
    kernels = kernels_by_node(reading.module(), plans(reading.module(), policy))
    options = DrawingOptions(kernels=kernels, kernels_of=policy)
    return view_of(reading, choose(reading.module(), Wanted(None, 2, None, None, None, None), False), options)


def frames(view: Drawing) -> dict[str, list[str]]:
    """The boxes in each frame."""
    found: dict[str, list[str]] = {}
    for box in view.boxes:
        if box.cluster is not None and box.node is not None:
            found.setdefault(box.cluster.title, []).append(box.node.name)
    return found


def box_of(view: Drawing, name: str) -> Box:
    """The box of a node."""
    return next(box for box in view.boxes if box.node is not None and box.node.name == name)


def named(module: Module, name: str) -> tuple[str, ...]:
    """The kernels of a node under XLA's CPU policy."""
    kernels = kernels_by_node(module, plans(module, "xla-cpu"))
    return next((k for node, k in kernels.items() if node.name == name), ())


def test_a_node_knows_the_kernels_that_compute_it() -> None:
    module = irscope.load(TEXT).module()
    assert named(module, "a") == ("s",) and named(module, "m") == ("m",) and named(module, "d") == ("d",)
    assert set(named(module, "n")) == {"s", "m"}


def test_a_kernel_of_several_boxes_has_a_frame_and_one_of_one_box_none() -> None:
    view = drawn(TEXT, "xla-cpu")
    assert frames(view) == {"kernel of %s": ["a", "s"]}
    assert "in 2 kernels" in box_of(view, "n").lines
    assert [cluster.title for cluster in view.clusters] == ["kernel of %s"]
    assert view.notes[0] == "frames are kernels under xla-cpu"


def test_operators_of_other_formats_are_framed_as_written() -> None:
    view = drawn((SAMPLES / "conv_cast_relu.relay").read_text(), "tvm")
    assert frames(view) == {"kernel of %3": ["0", "1", "2", "3"]}


def test_a_drawing_of_sections_says_that_it_cannot_frame_kernels() -> None:
    body = "\n".join(f"  a{i} = f32[8]{{0}} negate({'x' if i == 0 else f'a{i - 1}'})" for i in range(400))
    view = drawn(f"HloModule m\nENTRY e {{\n  x = f32[8]{{0}} parameter(0)\n{body}\n  ROOT r = f32[8]{{0}} abs(a399)\n}}\n", "xla-cpu")
    assert any("too large to frame the kernels" in note for note in view.notes)


def test_show_frames_kernels_in_pictures_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(SAMPLES / "wasteful.pre.hlo"), tmp_path / "k.dot"
    assert main(["show", source, "--policy", "xla-cpu", "-o", str(out)]) == 0
    assert 'label="kernel of %reduce_sum.7"' in out.read_text() and "xla-cpu@jaxlib-" in out.read_text()
    assert main(["show", source, "--policy", "xla-gpu", "--device", "a100", "--color-by", "fusion", "-o", str(out)]) == 0
    assert main(["show", source, "--policy", "xla-cpu"]) == 2 and "in a drawing" in capsys.readouterr().err
    assert main(["show", source, "--device", "a100", "-o", str(out)]) == 2 and "without a policy" in capsys.readouterr().err
    assert main(["show", source, "--policy", "nope", "-o", str(out)]) == 2

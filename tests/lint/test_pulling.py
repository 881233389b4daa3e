"""A slice that is pulled up: through which operators it goes, along which of their dimensions, and that the values stay."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.analysis.types import check_graph
from irscope.lint.edits import built
from irscope.lint.pulling import Pulled, pulled
from irscope.lint.view import ModuleView
from irscope.source import Severity
from tests.lint.test_edits import run

SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
H, W, D = "h = f32[6,8] parameter(0)", "w = f32[8,10] parameter(1)", "d = f32[6,10] dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
P, I = "p = s32[2] parameter(2)", "i = s32[] parameter(2)\nj = s32[] parameter(3)"  # noqa: E741


def found(lines: str) -> Pulled | None:
    """What the root of a program lets be left out; a program with it left out has the same types and values."""
    reading = irscope.load(f"HloModule m\n\n{SUM}ENTRY e {{\n" + "\n".join("  " + line.strip() for line in lines.strip().splitlines()) + "\n}\n")
    assert reading.ok, [finding.message for finding in reading.findings]
    module = reading.module()
    graph = module.main()
    one = pulled(ModuleView(module), graph.result(), graph)
    if one is not None:
        made = built(graph.nodes, [graph.result()], one.edit, graph.name)
        assert [fault for fault in check_graph(made) if fault.severity is Severity.ERROR] == []
        for before, after in zip(run(graph), run(made), strict=True):
            np.testing.assert_allclose(after, before, rtol=1e-5)
    return one


def through(lines: str) -> dict[str, int]:
    one = found(lines)
    return {node.name: along for node, along in one.along.items()} if one else {}


@pytest.mark.parametrize(("lines", "narrow"), [
    (f"{H}\n{W}\n{D}\nROOT s = f32[2,10] slice(d), slice={{[0:2], [0:10]}}", {"d": 0}),
    (f"{H}\n{W}\n{D}\nROOT s = f32[6,2] slice(d), slice={{[0:6], [8:10]}}", {"d": 1}),
    (f"{H}\n{W}\n{D}\nROOT s = f32[2,10] slice(d), slice={{[1:6:3], [0:10]}}", {"d": 0}),
    (f"{H}\n{W}\n{D}\nROOT s = f32[2,5] slice(d), slice={{[1:3], [0:10:2]}}", {"d": 0}),
    (f"{H}\n{W}\n{D}\nROOT s = f32[4,5] slice(d), slice={{[1:5], [0:10:2]}}", {"d": 1}),
    (f"{H}\n{W}\n{D}\nROOT s = f32[6,10] slice(d), slice={{[0:6], [0:10]}}", {}),
    (f"{H}\nt = f32[6,8] tanh(h)\nROOT s = f32[2,8] slice(t), slice={{[0:2], [0:8]}}", {}),
    (f"{H}\n{W}\n{D}\nt = f32[6,10] tanh(d)\nn = f32[6,10] add(t, t)\nROOT s = f32[2,10] slice(n), slice={{[4:6], [0:10]}}", {"n": 0, "t": 0, "d": 0}),
    (f"{H}\n{W}\n{D}\nc = f32[10] parameter(2)\nb = f32[6,10] broadcast(c), dimensions={{1}}\nn = f32[6,10] add(d, b)\n"
     "ROOT s = f32[2,10] slice(n), slice={[0:2], [0:10]}", {"n": 0, "b": 0, "d": 0}),
    (f"{H}\n{W}\n{D}\nc = f32[10] parameter(2)\nb = f32[6,10] broadcast(c), dimensions={{1}}\nn = f32[6,10] add(d, b)\n"
     "ROOT s = f32[6,3] slice(n), slice={[0:6], [7:10]}", {"n": 1, "b": 1, "d": 1}),
    (f"{H}\n{W}\n{D}\nt = f32[10,6] transpose(d), dimensions={{1,0}}\nROOT s = f32[3,6] slice(t), slice={{[2:5], [0:6]}}", {"t": 0, "d": 1}),
    (f"{H}\n{W}\n{D}\nt = f32[6,10] reverse(d), dimensions={{1}}\nROOT s = f32[2,10] slice(t), slice={{[2:4], [0:10]}}", {"t": 0, "d": 0}),
    (f"{H}\n{W}\n{D}\nt = f32[6,10] reverse(d), dimensions={{0}}\nROOT s = f32[2,10] slice(t), slice={{[2:4], [0:10]}}", {}),
    (f"{H}\n{W}\n{D}\nt = f32[6,2,5] reshape(d)\nROOT s = f32[2,2,5] slice(t), slice={{[2:4], [0:2], [0:5]}}", {"t": 0, "d": 0}),
    (f"{H}\n{W}\n{D}\nt = f32[6,2,5] reshape(d)\nROOT s = f32[6,1,5] slice(t), slice={{[0:6], [0:1], [0:5]}}", {}),
    (f"{H}\n{W}\n{D}\nt = f32[3,2,10] reshape(d)\nROOT s = f32[3,2,4] slice(t), slice={{[0:3], [0:2], [2:6]}}", {"t": 2, "d": 1}),
    (f"{H}\n{W}\n{D}\nu = f32[6,3] slice(d), slice={{[0:6], [1:4]}}\nROOT s = f32[2,3] slice(u), slice={{[2:4], [0:3]}}", {"u": 0, "d": 0}),
    (f"{H}\n{W}\n{D}\nu = f32[5,10] slice(d), slice={{[1:6], [0:10]}}\nROOT s = f32[2,10] slice(u), slice={{[2:4], [0:10]}}", {}),
    (f"{H}\n{W}\n{D}\nk = f32[6,4] parameter(2)\nu = f32[6,14] concatenate(d, k), dimensions={{1}}\nROOT s = f32[2,14] slice(u), slice={{[2:4], [0:14]}}",
     {"u": 0, "d": 0}),
    (f"{H}\n{W}\n{D}\nk = f32[6,4] parameter(2)\nu = f32[6,14] concatenate(d, k), dimensions={{1}}\nROOT s = f32[6,4] slice(u), slice={{[0:6], [2:6]}}", {}),
    (f"{H}\n{W}\n{D}\nz = f32[] constant(0)\nu = f32[6] reduce(d, z), dimensions={{1}}, to_apply=sum\nROOT s = f32[2] slice(u), slice={{[2:4]}}",
     {"u": 0, "d": 0}),
    (f"{H}\n{W}\n{D}\nz = f32[] constant(0)\nu = f32[10] reduce(d, z), dimensions={{0}}, to_apply=sum\nROOT s = f32[2] slice(u), slice={{[2:4]}}",
     {"u": 0, "d": 1}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[7,8] pad(h, z), padding=1_0x0_0\nd = f32[7,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[1:3], [0:10]}}", {"d": 0, "u": 0}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[7,8] pad(h, z), padding=1_0x0_0\nd = f32[7,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[5:7], [0:10]}}", {"d": 0, "u": 0}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[7,8] pad(h, z), padding=1_0x0_0\nd = f32[7,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[0:2], [0:10]}}", {"d": 0}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[7,8] pad(h, z), padding=0_1x0_0\nd = f32[7,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[5:7], [0:10]}}", {"d": 0}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[7,8] pad(h, z), padding=0_1x0_0\nd = f32[7,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[4:6], [0:10]}}", {"d": 0, "u": 0}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[7,8] pad(h, z), padding=1_0x0_0\nd = f32[7,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[1:5:2], [0:10]}}", {"d": 0}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[11,8] pad(h, z), padding=0_0_1x0_0\nd = f32[11,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[1:3], [0:10]}}", {"d": 0}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[5,8] pad(h, z), padding=-1_0x0_0\nd = f32[5,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[1:3], [0:10]}}", {"d": 0}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[5,8] pad(h, z), padding=0_-1x0_0\nd = f32[5,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"ROOT s = f32[2,10] slice(d), slice={{[1:3], [0:10]}}", {"d": 0, "u": 0}),
    (f"{H}\n{W}\n{D}\nz = f32[] constant(0)\nu = f32[6,12] pad(d, z), padding=0_0x1_1\nROOT s = f32[2,12] slice(u), slice={{[1:3], [0:12]}}", {"u": 0, "d": 0}),
    ("h = f32[4,6,8] parameter(0)\nw = f32[4,8,5] parameter(1)\nd = f32[4,6,5] dot(h, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}\nROOT s = f32[1,6,5] slice(d), slice={[3:4], [0:6], [0:5]}", {"d": 0}),
    ("h = f32[6,4,8] parameter(0)\nw = f32[5,8,4] parameter(1)\nd = f32[4,6,5] dot(h, w), lhs_batch_dims={1}, rhs_batch_dims={2}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}\nROOT s = f32[4,6,2] slice(d), slice={[0:4], [0:6], [1:3]}", {"d": 2}),
    (f"{H}\nv = f32[6,8] tanh(h)\n{W}\n{D.replace('h,', 'v,')}\nROOT s = f32[2,10] slice(d), slice={{[0:2], [0:10]}}", {"d": 0, "v": 0}),
    (f"{H}\nx = f32[10,6] parameter(1)\nv = f32[6,8] tanh(h)\nd = f32[10,8] dot(x, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     "ROOT s = f32[2,8] slice(d), slice={[0:2], [0:8]}", {"d": 0}),
    (f"{H}\n{W}\n{I}\n{D}\nROOT s = f32[2,10] dynamic-slice(d, i, j), dynamic_slice_sizes={{2,10}}", {"d": 0}),
    (f"{H}\n{W}\n{I}\n{D}\nROOT s = f32[6,2] dynamic-slice(d, i, j), dynamic_slice_sizes={{6,2}}", {"d": 1}),
    (f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[7,8] pad(h, z), padding=1_0x0_0\nd = f32[7,10] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
     f"i = s32[] parameter(2)\nj = s32[] parameter(3)\nROOT s = f32[2,10] dynamic-slice(d, i, j), dynamic_slice_sizes={{2,10}}", {"d": 0}),
    (f"{H}\n{W}\n{P}\n{D}\nROOT g = f32[2,10] gather(d, p), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, "
     "slice_sizes={1,10}", {"d": 0}),
    (f"{H}\n{W}\n{P}\n{D}\nROOT g = f32[6,2] gather(d, p), offset_dims={{0}}, collapsed_slice_dims={{1}}, start_index_map={{1}}, index_vector_dim=1, "
     "slice_sizes={6,1}", {"d": 1}),
    (f"{H}\n{W}\n{P}\n{D}\nROOT g = f32[2,6] gather(d, p), offset_dims={{1}}, collapsed_slice_dims={{1}}, start_index_map={{1}}, index_vector_dim=1, "
     "slice_sizes={6,1}", {"d": 1}),
    (f"{H}\n{W}\n{P}\n{D}\nROOT g = f32[2,9] gather(d, p), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, "
     "slice_sizes={1,9}", {}),
    (f"{H}\n{W}\np = s32[6] parameter(2)\n{D}\nROOT g = f32[6,10] gather(d, p), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
     "index_vector_dim=1, slice_sizes={1,10}", {}),
    (f"{H}\n{W}\np = s32[1,2] parameter(2)\n{D}\nROOT g = f32[1,2,10] gather(d, p), offset_dims={{2}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
     "index_vector_dim=2, slice_sizes={1,10}", {"d": 0}),
])
def test_operators_that_compute_the_part_alone(lines: str, narrow: dict[str, int]) -> None:
    assert through(lines) == narrow


def test_what_another_node_reads_is_computed_whole() -> None:
    whole = f"{H}\n{W}\n{D}\nt = f32[6,10] tanh(d)\nROOT s = f32[2,10] slice(t), slice={{[0:2], [0:10]}}"
    assert through(whole) == {"t": 0, "d": 0}
    reading = irscope.load("HloModule m\n\nENTRY e {\n  " + whole.replace("ROOT ", "").replace("\n", "\n  ")
                           + "\n  ROOT r = (f32[2,10], f32[6,10]) tuple(s, d)\n}\n").module()
    graph = reading.main()
    assert pulled(ModuleView(reading), next(n for n in graph.nodes if n.name == "s"), graph) is None, "the product has another user"


def test_operands_that_are_wanted_along_two_dimensions_are_computed_whole() -> None:
    lines = ("x = f32[6,6] parameter(0)\ny = f32[6,6] parameter(1)\nd = f32[6,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
             "t = f32[6,6] transpose(d), dimensions={1,0}\nn = f32[6,6] multiply(d, t)\ne = f32[6,6] dot(n, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
             "ROOT s = f32[2,6] slice(e), slice={[0:2], [0:6]}")
    assert through(lines) == {"e": 0, "n": 0, "t": 0}


def test_the_dimension_of_the_most_products_and_pads() -> None:
    one = found(f"{H}\n{W}\n{D}\nx = f32[10,12] parameter(2)\ne = f32[6,12] dot(d, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                "z = f32[] constant(0)\nu = f32[6,14] pad(e, z), padding=0_0x1_1\nROOT s = f32[4,2] slice(u), slice={[1:5], [1:3]}")
    assert one is not None and [node.name for node in one.products] == ["e", "d"] and one.pads == []
    padded = found(f"{H}\n{W}\nz = f32[] constant(0)\nu = f32[7,8] pad(h, z), padding=1_0x0_0\n"
                   "d = f32[7,10] dot(u, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nROOT s = f32[2,10] slice(d), slice={[1:3], [0:10]}")
    assert padded is not None and [node.name for node in padded.pads] == ["u"] and (padded.part.start, padded.part.kept, padded.part.size) == (1, 2, 7)


@pytest.mark.parametrize(("steps", "reached"), [(255, True), (256, False)])
def test_a_slice_is_pulled_through_so_many_operators(steps: int, reached: bool) -> None:
    chain = "\n".join(f"t{i} = f32[6,10] negate({f't{i - 1}' if i else 'd'})" for i in range(steps))
    assert bool(through(f"{H}\n{W}\n{D}\n{chain}\nROOT s = f32[2,10] slice(t{steps - 1}), slice={{[0:2], [0:10]}}")) is reached

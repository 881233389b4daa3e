"""Patterns of the user's own become functions with names: what they take, in which order, and what they leave."""
from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import irscope
from irscope.cli.main import group
from irscope.formats.relay import print_module
from irscope.graph import Module
from irscope.passes.manager import run_passes
from irscope.passes.merge_composite import MergeComposite
from irscope.passes.pattern import anything, op
from irscope.passes.pattern_text import pattern_of
from irscope.passes.registry import pass_named, split_outside
from irscope.source import UserError
from tests.passes.relay_runs import meaning_stays

X, W, B = "%x: Tensor[(1, 4, 6, 6), float32]", "%w: Tensor[(4, 4, 3, 3), float32]", "%b: Tensor[(4), float32]"
LAYER = "  %0 = nn.conv2d(%x, %w, padding=[1, 1], channels=4, kernel_size=[3, 3]);\n  %1 = nn.bias_add(%0, %b);\n"


def module_of(body: str) -> Module:
    reading = irscope.load(f"def @main({X}, {W}, {B}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def merged(body: str, patterns: str) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Names and makings of the functions, and what was declined; numbers and text stay."""
    module = module_of(body)
    *_, last = run_passes(module, [f"merge-composite{{patterns={patterns}}}"])
    assert not last.broke
    meaning_stays(module, last.after)
    again = irscope.load(print_module(last.after)).module()
    assert print_module(again) == print_module(last.after)
    nodes = [n for graph in last.after.graphs.values() for n in graph.nodes if n.op.name == "fn"]
    return [(n.attrs["Composite"], n.attrs["PartitionedFromPattern"]) for n in nodes], last.declined


@pytest.mark.parametrize(("body", "patterns", "functions"), [
    (LAYER + "  nn.relu(%1)", "a: nn.relu(nn.bias_add(nn.conv2d(*, *), *))", [("a", "nn.conv2d_nn.bias_add_nn.relu_")]),
    (LAYER + "  tanh(%1)", "a: nn.relu?(nn.bias_add(nn.conv2d(*, *), *))", [("a", "nn.conv2d_nn.bias_add_")]),
    (LAYER + "  nn.relu(%1)", "a: nn.bias_add(nn.conv2d(*, *), *); b: nn.relu(nn.bias_add(nn.conv2d(*, *), *)); c: nn.relu(*)",
     [("a", "nn.conv2d_nn.bias_add_"), ("c", "nn.relu_")]),
    (LAYER + "  nn.relu(%1)", "a: nn.relu(nn.bias_add(nn.conv2d(*, *)[data_layout=NHWC], *))", []),
    (LAYER + "  nn.relu(%1)", "a: nn.relu(nn.bias_add(nn.conv2d(*, *)[data_layout='NCHW', padding=[1, 1]], *))",
     [("a", "nn.conv2d_nn.bias_add_nn.relu_")]),
    ("  %0 = add(%x, %x);\n  %1 = add(%x, %0);\n  add(%1, %0)", "a: add(add(y, add(y, z)), add(y, z))", [("a", "add_add_add_")]),
    ("  %0 = add(%x, 1f);\n  nn.relu(%0)", "a: nn.relu(add(*, constant))", [("a", "add_nn.relu_")]),
    ("  %0 = add(%x, %x);\n  nn.relu(%0)", "a: nn.relu(add(*, constant))", []),
    ("  %0 = nn.dropout(%x);\n  tanh(%0.0)", "a: tanh(nn.dropout(*).0)", [("a", "nn.dropout_TupleGetItem0_tanh_")]),
    ("  tanh(%x)", "a: (nn.relu(*) | tanh(*))", [("a", "tanh_")]),
])
def test_what_patterns_take(body: str, patterns: str, functions: list[tuple[str, str]]) -> None:
    assert merged(body, patterns)[0] == functions


def test_what_others_need_stays_and_is_told() -> None:
    functions, declined = merged(LAYER + "  %2 = nn.relu(%1);\n  add(%2, %0)", "a: nn.relu(nn.bias_add(nn.conv2d(*, *), *))")
    assert not functions and len(declined) == 1 and "needs %0 too" in declined[0]


def test_constants_that_are_asked_for_stand_inside() -> None:
    for pattern, params in (("nn.relu(add(*, constant))", 1), ("nn.relu(add(*, *))", 2)):
        made = pass_named(f"merge-composite{{patterns=a: {pattern}}}").run(module_of("  %0 = add(%x, 1f);\n  nn.relu(%0)"))
        assert next(n.bodies[0].notes["own"] for n in made.main().nodes if n.op.name == "fn") == params


def test_graphs_of_the_same_function_have_numbers() -> None:
    made = pass_named("merge-composite{patterns=a: nn.relu(*)}").run(module_of("  nn.relu(add(nn.relu(add(nn.relu(%x), %x)), %x))"))
    assert list(made.graphs) == ["main", "main.a", "main.a.1", "main.a.2"]
    assert all(graph.name == name for name, graph in made.graphs.items())
    assert {n.bodies[0] for n in made.main().nodes if n.op.name == "fn"} == {made.graphs[name] for name in list(made.graphs)[1:]}


def test_functions_are_not_taken_apart_again() -> None:
    module = module_of(LAYER + "  nn.relu(%1)")
    once = pass_named("merge-composite{patterns=a: nn.relu(nn.bias_add(*, *))}").run(module)
    twice = pass_named("merge-composite{patterns=a: nn.bias_add(*, *)}").run(once)
    assert print_module(once) == print_module(twice)


def test_patterns_come_from_files_and_from_python(tmp_path: Path) -> None:
    (tmp_path / "patterns.txt").write_text("# layers\nmy.layer: nn.bias_add(nn.conv2d(*, *), *)\n\n")
    (tmp_path / "m.relay").write_text(f"def @main({X}, {W}, {B}) {{\n{LAYER}  nn.relu(%1)\n}}\n")
    done = CliRunner().invoke(group, ["opt", str(tmp_path / "m.relay"), "--passes", f"merge-composite{{file={tmp_path}/patterns.txt}}", "--verify"])
    assert done.exit_code == 0 and 'Composite="my.layer"' in done.stdout and "the same" in done.stderr
    made = MergeComposite.of([("own", op("nn.bias_add")(anything(), ...))]).run(module_of(LAYER + "  nn.relu(%1)"))
    assert 'Composite="own"' in print_module(made)


@pytest.mark.parametrize(("text", "words"), [
    ("nn.relu(*", "or `\\)` is expected"), ("nn.rulu(*)", "no operator"), ("nn.relu(*)x(", "should end: nn.relu\\(\\*\\) <here> x"), ("nn.relu(*) nn.relu(*)", "should end"),
    ("nn.relu?()", "needs an operand"), ("nn.conv2d(*, *)[layout=NCHW]", "no attribute 'layout'"), ("", "expected here"), ("#", "no part of a pattern"),
    ("nn.relu(" * 200, "nested more than"),
])
def test_patterns_that_make_no_sense(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        pattern_of(text)


def test_options_that_make_no_sense() -> None:
    with pytest.raises(UserError, match="has no name"):
        pass_named("merge-composite{patterns=nn.relu(*)}")
    with pytest.raises(UserError, match="nowhere.txt: no such file"):
        pass_named("merge-composite{file=nowhere.txt}")


def test_lists_are_parted_outside_of_brackets_and_quotes() -> None:
    assert split_outside("a{x=1,y=(2, 3)},b, c{z='1,2'}") == ["a{x=1,y=(2, 3)}", "b", "c{z='1,2'}"]
    assert split_outside("a: f(x; y); b", ";") == ["a: f(x; y)", "b"]
    assert split_outside(" , ,") == []

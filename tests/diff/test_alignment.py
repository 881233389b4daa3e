"""Which nodes are the same before and after an edit or a compiler's passes; names, metadata and the order of lines are taken out first."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import irscope
from benchmarks.alignment.drafts import anonymous
from benchmarks.alignment.edits import EDITS
from benchmarks.alignment.scoring import Score, alike, score
from benchmarks.diff_alignment import edit_scores, edited, kept, load, truth_of
from irscope.cli.main import group
from irscope.diff import Comparison, compare
from irscope.diff.changes import groups
from irscope.graph import Module, Node
from tests.schemas import conforms

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
TEXTS = ("mlp.pre.hlo", "mlp.opt.hlo", "transformer.pre.hlo", "transformer.opt.hlo", "residual.pre.hlo", "residual.opt.hlo", "newton.pre.hlo")
LAYER = """
ENTRY e {
  x = f32[4,4] parameter(0)
  w = f32[4,4] parameter(1)
  a = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[4,4] tanh(a)
  c = f32[4,4] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[4,4] tanh(c)
  k = f32[] constant(2)
  l = f32[4,4] broadcast(k), dimensions={}
  m = f32[4,4] multiply(d, l)
  ROOT r = f32[4,4] subtract(m, x)
}
"""
FUSED = """
fused {
  p = f32[4,4] parameter(0)
  q = f32[4,4] parameter(1)
  k = f32[] constant(2)
  l = f32[4,4] broadcast(k), dimensions={}
  m = f32[4,4] multiply(p, l)
  ROOT r = f32[4,4] subtract(m, q)
}
ENTRY e {
  x = f32[4,4] parameter(0)
  w = f32[4,4] parameter(1)
  a = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[4,4] tanh(a)
  c = f32[4,4] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[4,4] tanh(c)
  ROOT f = f32[4,4] fusion(d, x), kind=kLoop, calls=fused
}
"""


def difference(before: str, after: str) -> Comparison:
    return compare(irscope.load("HloModule a\n" + before).module(), irscope.load("HloModule b\n" + after).module())


def listed(comparison: Comparison) -> list[tuple[str, str, str]]:
    """(kind, operator, what differs) of all groups."""
    return [(g.kind, g.ops[0] or g.ops[1] or "", f"{g.what} x{len(g.changes)}") for pair in comparison.pairs for g in groups(pair.changes)]


def pairs_of(before: Module, after: Module) -> list[tuple[Node, Node]]:
    return list(compare(before, after).alignment.pairs.items())


@pytest.mark.parametrize("name", EDITS)
def test_nodes_are_found_again_after_a_known_edit(name: str) -> None:
    total = Score()
    for number, text in enumerate(TEXTS):
        module = load(SAMPLES / text)
        assert module is not None
        both = edited(module, name, number)
        if both is not None:
            before, after = both
            found = pairs_of(before.module, after.module)
            total.add(score(found, truth_of(before, after), alike(before.module), alike(after.module)))
    assert total.truth > 100
    assert total.precision >= 0.97, total
    assert total.recall >= 0.97, total


def test_edits_are_drawn_by_a_seed() -> None:
    first, second = (list(edit_scores([SAMPLES / "mlp.pre.hlo"], 4, 5, pairs_of)) for _ in range(2))
    assert [one[:3] for one in first] == [one[:3] for one in second]


@pytest.mark.parametrize("name", ["mlp", "transformer", "residual", "newton"])
def test_names_that_the_compiler_kept_are_paired(name: str) -> None:
    first, second = load(SAMPLES / f"{name}.pre.hlo"), load(SAMPLES / f"{name}.opt.hlo")
    assert first is not None and second is not None
    before, after = anonymous(first, 1), anonymous(second, 2)
    truth = {before.became[a][0]: after.became[b] for a, b in kept(first, second).items()}
    found = score(pairs_of(before.module, after.module), truth, alike(before.module), alike(after.module))
    assert found.truth >= 3
    assert found.precision >= 0.97, found
    assert found.recall >= 0.97, found


@pytest.mark.parametrize("text", TEXTS)
def test_other_names_and_another_order_of_lines_are_no_change(text: str) -> None:
    module = load(SAMPLES / text)
    assert module is not None
    comparison = compare(module, anonymous(module, 3).module)
    assert comparison.same
    assert not any(comparison.kinds().values())


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("d = f32[4,4] tanh(c)", "d = f32[4,4] cosine(c)", [("changed", "tanh", "tanh became cosine x1")]),
    ("subtract(m, x)", "subtract(x, m)", [("changed", "subtract", "operands swapped x1")]),
    ("subtract(m, x)", "subtract(m, d)", [("changed", "subtract", "operand 1 is another value x1")]),
    ("tanh(", "exponential(", [("changed", "tanh", "tanh became exponential x2")]),
    ("constant(2)", "constant(3)", [("changed", "constant", "literal: 2 became 3 x1")]),
    ("ROOT r = f32[4,4] subtract(m, x)", "s = f32[4,4] subtract(m, x)\n  ROOT r = f32[4,4] abs(s)", [("added", "abs", " x1")]),
    ("  b = f32[4,4] tanh(a)\n  c = f32[4,4] dot(b, w)", "  c = f32[4,4] dot(a, w)", [("removed", "tanh", " x1")]),
])
def test_a_change_is_one_change(old: str, new: str, expected: list[tuple[str, str, str]]) -> None:
    assert old in LAYER
    assert listed(difference(LAYER, LAYER.replace(old, new)))[:len(expected)] == expected


def test_nodes_that_are_fused_moved() -> None:
    comparison = difference(LAYER, FUSED)
    assert listed(comparison) == [("added", "fusion", " x1"), *(("moved", op, "into a fusion x1") for op in ("constant", "broadcast", "multiply",
                                                                                                             "subtract"))]
    assert all(change.graphs == ("e", "fused") for pair in comparison.pairs for change in pair.changes if change.kind == "moved")
    back = listed(difference(FUSED, LAYER))
    assert ("moved", "multiply", "out of a fusion x1") in back


def test_bodies_of_fusions_are_compared_node_by_node() -> None:
    comparison = difference(FUSED, FUSED.replace("multiply(p, l)", "divide(p, l)"))
    assert listed(comparison) == [("changed", "multiply", "multiply became divide x1")]


def test_a_constant_is_paired_by_its_value_or_its_place() -> None:
    swapped = LAYER.replace("multiply(d, l)", "divide(d, l)").replace("constant(2)", "constant(0.5)")
    assert ("removed", "constant", " x1") in listed(difference(LAYER, swapped))
    assert ("added", "constant", " x1") in listed(difference(LAYER, swapped))


def test_another_copy_of_a_value_is_a_duplicate() -> None:
    text = LAYER.replace("subtract(m, x)", "subtract(m, y)").replace("  k = ", "  y = f32[4,4] tanh(c)\n  k = ")
    before = LAYER.replace("subtract(m, x)", "subtract(m, d)")
    assert listed(difference(before, text)) == [("duplicated", "tanh", " x1")]
    assert listed(difference(text, before)) == [("merged", "tanh", " x1")]


def test_a_new_parameter_moves_the_numbers_of_the_others() -> None:
    after = LAYER.replace("parameter(1)", "parameter(2)").replace("parameter(0)", "parameter(1)").replace(
        "  x =", "  n = f32[4,4] parameter(0)\n  x =").replace("subtract(m, x)", "subtract(m, n)")
    found = listed(difference(LAYER, after))
    assert ("changed", "parameter", "another number x2") in found
    assert ("added", "parameter", " x1") in found


def test_the_command_groups_equal_changes(tmp_path: Path) -> None:
    a, b = tmp_path / "a.hlo", tmp_path / "b.hlo"
    a.write_text("HloModule a\n" + LAYER)
    b.write_text("HloModule b\n" + LAYER.replace("tanh(", "exponential("))
    text = CliRunner().invoke(group, ["diff", str(a), str(b)]).stdout
    assert "  ~ tanh ×2: tanh became exponential: %b, %d" in text
    assert "  2 changed" in text
    markdown = CliRunner().invoke(group, ["diff", str(a), str(b), "--format", "markdown"]).stdout
    assert "- ~ tanh **×2**: tanh became exponential" in markdown
    found = json.loads(CliRunner().invoke(group, ["diff", str(a), str(b), "--format", "json", "--matches"]).stdout)
    schema = json.loads((Path(irscope.__file__).parent / "schemas" / "diff.json").read_text())
    assert conforms(found, schema, schema) == []
    assert found["kinds"]["changed"] == 2
    assert found["graphs"][0]["groups"] == [
        {"kind": "changed", "before": "tanh", "after": "exponential", "what": "tanh became exponential", "times": 2, "changes": [0, 1]}]
    assert ["e", "c", "e", "c"] in found["matches"]
    assert found["aligned"] == len(found["matches"]) == 10


def test_drawings_show_both_sides_and_link_them(tmp_path: Path) -> None:
    a, b = tmp_path / "a.hlo", tmp_path / "b.hlo"
    a.write_text("HloModule a\n" + LAYER)
    b.write_text("HloModule b\n" + FUSED)
    page = CliRunner().invoke(group, ["diff", str(a), str(b), "--format", "html"]).stdout
    before, after = page.split('<div class="side">')[1:3]
    partners = [{part.split('"')[0] for part in side.split('<g class="node" data-partner="')[1:]} for side in (before, after)]
    assert len(partners[0] & partners[1]) >= 6
    assert "in %f" in after and "in %f" not in before
    drawing = CliRunner().invoke(group, ["diff", str(a), str(b), "--format", "svg"]).stdout
    assert drawing.count("<svg ") == 3
    assert ">moved</text>" in drawing
    assert CliRunner().invoke(group, ["diff", str(a), str(a), "--format", "svg"]).exit_code == 2


ADD = "add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
MAXIMUM = ADD.replace("add {", "max {").replace("add(", "maximum(")
REDUCTIONS = """
ENTRY e {
  p = f32[8,4] parameter(0)
  z = f32[] constant(0)
  n = f32[8,4] negate(p)
  r = f32[8] reduce(p, z), dimensions={1}, to_apply=add
  r2 = f32[4] reduce(n, z), dimensions={0}, to_apply=add
  ROOT t = (f32[8], f32[4]) tuple(r, r2)
}
"""


def test_a_reduction_with_another_computation_changed() -> None:
    before, after = ADD + REDUCTIONS, ADD + MAXIMUM + REDUCTIONS.replace("{0}, to_apply=add", "{0}, to_apply=max")
    for old, new, why in ((before, after, "computation: %add became %max"), (after, before, "computation: %max became %add")):
        changes = [change for pair in difference(old, new).pairs for change in pair.changes]
        assert [(change.before and change.before.name, change.why) for change in changes] == [("r2", why)]


def test_long_values_are_shown_from_where_they_differ() -> None:
    before = "\nENTRY e { c = f32[40] constant({%s})\n p = f32[40] parameter(0)\n ROOT r = f32[40] add(p, c) }\n"
    values = [str(i) for i in range(40)]
    old = before % ", ".join(values)
    new = before % ", ".join([*values[:30], "99", *values[31:]])
    (change,) = difference(old, new).pairs[0].changes
    mine, theirs = change.why.split(" became ")
    assert "29, 30, 31" in mine and "29, 99, 31" in theirs
    assert len(mine) < 75 and len(theirs) < 75


def test_the_time_does_not_grow_with_the_square_of_the_users_of_a_value() -> None:
    from irscope.diff.matching import ValueMatcher

    built: list[int] = []
    original = ValueMatcher._user_set

    class Counted(dict[int, set[int]]):
        def __setitem__(self, key: int, value: set[int]) -> None:
            built.append(len(value))
            super().__setitem__(key, value)

    def user_set(self: ValueMatcher, users: list[tuple[int, int]]) -> set[int]:
        self.user_sets = self.user_sets if isinstance(self.user_sets, Counted) else Counted()
        return original(self, users)

    def text(op: str, value: int) -> str:
        lines = ["ENTRY e {", " p = f32[4] parameter(0)", f" h = f32[4] {op}(p)"]
        lines += [f" k{i} = f32[] constant({i + value})\n b{i} = f32[4] broadcast(k{i}), dimensions={{}}\n u{i} = f32[4] add(h, b{i})"
                  for i in range(200)]
        return "\n".join([*lines, f" ROOT t = ({', '.join(['f32[4]'] * 200)}) tuple({', '.join(f'u{i}' for i in range(200))})", "}"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ValueMatcher, "_user_set", user_set)
        comparison = difference(text("tanh", 0), text("abs", 1000))
    assert len(comparison.alignment.pairs) > 400
    assert sum(built) < 20 * 803, "each list of users is a set once"


def test_markdown_shows_hostile_names_as_text(tmp_path: Path) -> None:
    a, b = tmp_path / "a<img src=x>|.hlo", tmp_path / "b`*.hlo"
    text = "HloModule a\nENTRY e { p = f32[4] parameter(0)\n ROOT c = f32[4] custom-call(p), custom_call_target=\"<b>[x](y)|\" }\n"
    a.write_text(text)
    b.write_text(text.replace("<b>", "<i>"))
    found = CliRunner().invoke(group, ["diff", str(a), str(b), "--format", "markdown"]).stdout
    assert "a\\<img src=x>|.hlo" in found and "b\\`\\*.hlo" in found
    assert "\\<b>[x\\](y)|" in found and "\\<i>" in found
    same = CliRunner().invoke(group, ["diff", str(a), str(a), "--format", "markdown"]).stdout
    assert "\\<img" in same and " <img" not in same


def test_signs_begin_no_list_in_markdown() -> None:
    from irscope.diff.report import as_text

    text = as_text(difference(LAYER, FUSED), "a", "b", markdown=True)
    assert "- \\+ %f = f32[4,4] fusion" in text
    assert "- \\> " in text
    assert "- + " not in text and "- > " not in text


def test_one_is_singular() -> None:
    from irscope.diff.report import as_text

    one = "\nENTRY e { ROOT p = f32[%d] parameter(0) }\n"
    text = as_text(difference(one % 2, one % 3), "a", "b")
    assert "1 node is on both sides" in text

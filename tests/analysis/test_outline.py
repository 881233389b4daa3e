"""The outline: scopes, computations, and repeats folded into one."""
from __future__ import annotations

import pytest

from irscope.analysis.outline import Section, merged, run_title
from irscope.analysis.scopes import split_scope
from tests.analysis.texts import FUSED, LOOP, layers, survey


def told(section: Section, depth: int = 0) -> list[str]:
    lines = [f"{'  ' * depth}{section.title} x{section.times} {section.n_nodes}" + (f" {section.note}" if section.note else "")]
    for child in section.children:
        lines += told(child, depth + 1)
    return lines


def test_layers_with_names_fold_by_name() -> None:
    assert told(survey(layers(6, scoped=True)).outline) == ["main x1 24", "  jit(f)/Net x1 24", "    layer_0..5 x6 24"]


def test_layers_fold_where_one_has_the_constants_that_all_share() -> None:
    named = ', metadata={op_name="jit(f)/Net/layer_0/one"}'
    shared = f"  c = f32[] constant(1){named}\n  one = f32[4,4] broadcast(c), dimensions={{}}{named}\n  i = f32[4,4] iota(), iota_dimension=0{named}\n"
    text = layers(6, scoped=True).replace("  w_0 =", f"{shared}  w_0 =")
    assert told(survey(text).scope_outline) == ["main x1 27", "  jit(f)/Net x1 27", "    layer_0..5 x6 27"]


def test_layers_that_do_other_work_do_not_fold() -> None:
    text = layers(3, scoped=True).replace("tanh(s1_0)", "exponential(s1_0)")
    assert told(survey(text).scope_outline) == [
        "main x1 12", "  jit(f)/Net x1 12", "    layer_0,2 x2 8", "    layer_1 x1 4"]


def test_a_module_without_an_entry_has_an_outline_without_scopes() -> None:
    facts = survey(layers(6, scoped=True).replace("ENTRY main", "body"))
    facts.module.entry = ""
    assert (facts.has_scopes, facts.entry, told(facts.outline)) == (False, None, ["layers x1 0"])


def test_layers_without_names_fold_by_what_they_do() -> None:
    # Each layer brings its parameter, whose name says which layer it is only when there are several; so the first step names the block.
    assert told(survey(layers(6)).outline) == ["main x1 31", "  block at %s0_0 x6 31"]


def test_a_block_is_called_by_its_parameters_common_name() -> None:
    text = layers(5)
    for i in range(5):
        text = text.replace(f"add(s{i}_2,", f"add(h_{i}_b,").replace(f"  w_{i} =", f"  h_{i}_b = f32[4,4] parameter({i + 10})\n  w_{i} =")
        text = text.replace(f"w_{i}", f"h_{i}_w")
    assert told(survey(text).graph_outline)[1].startswith("  h_0..4 x5 ")


def test_fused_operations_count_where_the_user_wrote_them() -> None:
    facts = survey(FUSED)
    outline = facts.scope_outline
    dense = next(s for s in outline.walk() if s.title == "dense")
    assert dense.ops == {"dot": 1, "add": 1, "broadcast": 1, "fusion": 1}
    assert dense.flops == 2 * 8 * 16 * 4 + 8 * 16


def test_loops_show_their_body_and_trips() -> None:
    assert "  %run body x1 7 5 trips" in told(survey(LOOP).graph_outline)


@pytest.mark.parametrize(("titles", "title"), [
    (["layer_0", "layer_1", "layer_2"], "layer_0..2"), (["h1", "h3"], "h1,3"), (["a", "a"], "a"),
    (["s1_b1", "s2_b2"], "s1_b1 .. s2_b2"), ([f"x{i}" for i in (1, 2, 3, 5, 8, 13, 21)], "x1,2,..,21"),
    (["x0", f"x{10 ** 17}"], f"x0,{10 ** 17}"), (["x0" + "0" * 4400, "x0" + "9" * 4400], "x0" + "0" * 4400 + " .. x0" + "9" * 4400),
])
def test_titles_of_runs(titles: list[str], title: str) -> None:
    assert run_title(titles) == title


def test_slashes_in_brackets_do_not_split() -> None:
    assert split_scope("jit(f)/transpose(jvp(a/b))/while[c/d]/add") == ("jit(f)", "transpose(jvp(a/b))", "while[c/d]", "add")


def test_flat_numbered_names_are_grouped() -> None:
    lines = ["HloModule m", "ENTRY main {", "  v = f32[4] parameter(0)"]
    value = "v"
    for block in range(7):
        for part, op in (("conv", "negate"), ("relu", "tanh")):
            lines.append(f'  {"ROOT " if (block, part) == (6, "relu") else ""}b{block}_{part} = f32[4] {op}({value}), '
                         f'metadata={{op_name="jit(f)/block_{block}_{part}/{op}"}}')
            value = f"b{block}_{part}"
    assert told(survey("\n".join([*lines, "}"])).scope_outline) == [
        "main x1 14", "  jit(f) x1 14", "    block_0..6 x7 14", "      block_0_conv x1 1", "      block_0_relu x1 1"]


def test_a_function_that_calls_itself_is_told_once() -> None:
    text = """def @f(%n: int32) -> int32 { if (less(%n, 10)) { @f(add(%n, 1)) } else { negative(%n) } }
def @main(%n: int32) -> int32 { @f(add(%n, 2)) }
"""
    assert told(survey(text).graph_outline)[2:] == [
        "    %if.8 branch 0 x1 2", "      f x1 0 calls itself", "    %if.8 branch 1 x1 1",
    ]


@pytest.mark.parametrize("copies", [2, 3])
def test_all_nodes_are_those_of_every_copy(copies: int) -> None:
    sections = [Section(f"layer_{i}", "scope", nodes=list(survey(layers(1)).module.main().nodes)) for i in range(copies)]
    whole = merged(sections)
    root = Section("net", "module", children=[whole])
    assert len(list(root.all_nodes())) == copies * 6
    assert [section.title for section in root.walk()] == ["net", whole.title]


def test_sections_begin_empty() -> None:
    section = Section("a", "scope")
    assert (section.times, section.n_nodes, section.kernels, section.flops, section.bytes, section.is_open, section.shape) == (1, 0, 0.0, 0.0, 0.0, False, -1)


@pytest.mark.parametrize(("titles", "one"), [
    (["a", "a"], "a"), (["l0", "l1"], "l0..1"), (["l9", "l10", "l11"], "l9..11"), (["l1", "l3"], "l1,3"), (["x1_y1", "x2_y2"], "x1_y1 .. x2_y2"),
    (["b1a", "b1b", "b1c"], "b1a..1c"), ([f"h{2 * i}" for i in range(6)], "h0,2,4,6,8,10"), ([f"h{2 * i}" for i in range(7)], "h0,2,..,12"),
    (["a1", "b"], "a1 .. b"),
])
def test_one_title_for_several(titles: list[str], one: str) -> None:
    assert run_title(titles) == one

"""What a fix builds in a node's place has the node's value: both graphs are run by the slow reference and compared."""

from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.analysis.reference import evaluate, flatten
from irscope.analysis.types import check_graph
from irscope.graph import Graph, TensorType
from irscope.lint import Context, Fixture, Rule, all_rules, find_rule, lint_module
from irscope.lint.edits import built, edited
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fix
from irscope.lint.settings import Settings
from irscope.passes import pass_named
from irscope.source import Severity

KEEPS = "ALG002 ALG005 ALG007 ALG010 ALG011 ALG013 ALG014 ALG015 BRD001 BRD004 DTY003 FUS002 FUS003 FUS004 FUS007 FUS012 FUS017 LAY001".split()
"""Rules whose fix keeps the value; of those that leave a rounding out (DTY003, FUS002), to half precision."""
CASES = [(find_rule(code), fixture) for code in KEEPS for fixture in find_rule(code).bad]


def inputs(graph: Graph) -> list[np.ndarray]:
    """Random arrays for the parameters, the same for each graph with parameters of these names."""
    arrays = []
    for param in graph.params:
        assert isinstance(param.type, TensorType)
        random = np.random.default_rng(len(param.name) + sum(param.type.dims()))
        dtype = param.type.dtype.numpy()
        values = random.uniform(0.5, 2.0, param.type.dims())
        arrays.append((values > 1.2).astype(dtype) if param.type.dtype.kind == "pred" else values.astype(dtype))
    return arrays


@pytest.mark.parametrize(("rule", "fixture"), CASES, ids=lambda x: getattr(x, "code", getattr(x, "format", "")))
def test_a_fix_keeps_the_value(rule: type[Rule], fixture: Fixture) -> None:
    outer = Context(irscope.load(fixture.text, format=fixture.format).module(), Settings(fixture.policy))
    if outer.view.primitive is None or (fixture.format != "hlo" and not rule.structural):
        return  # looked at as written, and nothing is tried
    context = outer if outer.view.primitive is outer.module else Context(outer.view.primitive, outer.settings)
    findings = [f for f in rule().check(context) if isinstance(f, RuleFinding) and f.edit is not None and f.at is not None]
    for finding in findings:
        assert finding.at is not None
        graph = finding.at[0]
        if graph is not context.module.main() or "the caller" in finding.message:
            continue
        made = built(graph.nodes, [graph.result()], finding.edit, graph.name)
        assert [fault for fault in check_graph(made) if fault.severity is Severity.ERROR] == []
        wide = {n.type.dtype.name for n in graph.nodes if isinstance(n.type, TensorType)} & {"bf16", "f16"}
        tolerance = 2e-2 if wide else 1e-5
        for before, after in zip(run(graph), run(made), strict=True):
            np.testing.assert_allclose(after.astype(np.float64), before.astype(np.float64), rtol=tolerance, atol=tolerance)


def run(graph: Graph) -> list[np.ndarray]:
    given = inputs(graph)
    return flatten(evaluate(graph, given))


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_that_rewrites_shows_it(rule: type[Rule]) -> None:
    """The kind of fix that a rule names is what its bad fixtures get."""
    edits = []
    for fixture in rule.bad:
        outer = Context(irscope.load(fixture.text, format=fixture.format).module(), Settings(fixture.policy))
        inner = outer.view.primitive if rule.structural and outer.view.primitive is not None else outer.module
        context = outer if inner is outer.module else Context(inner, outer.settings)
        edits += [f.edit for f in rule().check(context) if isinstance(f, RuleFinding)]
    assert any(edit is not None for edit in edits) is (rule.fix is Fix.REWRITE)


@pytest.mark.parametrize("rule", [r for r in all_rules() if r.passes], ids=lambda rule: rule.code)
def test_the_passes_of_a_rule_mend_some_of_its_cases(rule: type[Rule]) -> None:
    for name in rule.passes:
        silent = 0
        for fixture in rule.bad:
            if fixture.format == "torchscript":
                continue  # passes work on HLO and Relay
            module = pass_named(name).run(irscope.load(fixture.text, format=fixture.format).module())
            silent += not lint_module(module, [rule], Settings(fixture.policy))
        assert silent


SUM = "add {\n  a = TYPE[] parameter(0)\n  b = TYPE[] parameter(1)\n  ROOT c = TYPE[] add(a, b)\n}\n"


@pytest.mark.parametrize(("element", "count"), [("s8", 300), ("u8", 256), ("s4", 9), ("u4", 17), ("u32", 5)])
def test_a_sum_of_equal_integers_wraps_as_their_product_does(element: str, count: int) -> None:
    """The number of terms need not be a value of the type: 300 terms of 8 bits are 44 times the term."""
    text = SUM.replace("TYPE", element) + (
        f"ENTRY e {{\n  x = {element}[3] parameter(0)\n  y = {element}[3,{count}] broadcast(x), dimensions={{0}}\n"
        f"  z = {element}[] constant(0)\n  ROOT r = {element}[3] reduce(y, z), dimensions={{1}}, to_apply=add\n}}\n")
    module = irscope.load(text).module()
    [finding] = find_rule("BRD004")().check(Context(module, Settings("xla-cpu")))
    assert isinstance(finding, RuleFinding) and finding.edit is not None
    graph = module.main()
    for before, after in zip(run(graph), run(built(graph.nodes, [graph.result()], finding.edit, graph.name)), strict=True):
        np.testing.assert_array_equal(after, before)


def test_a_count_that_the_type_cannot_hold_is_no_factor() -> None:
    """65504 is the largest half: 70000 equal halves are not one of them times an infinity."""
    text = SUM.replace("TYPE", "f16") + (
        "ENTRY e {\n  x = f16[3] parameter(0)\n  y = f16[3,COUNT] broadcast(x), dimensions={0}\n"
        "  z = f16[] constant(0)\n  ROOT r = f16[3] reduce(y, z), dimensions={1}, to_apply=add\n}\n")
    for count, has_edit in ((65504, True), (65505, False)):
        [finding] = find_rule("BRD004")().check(Context(irscope.load(text.replace("COUNT", str(count))).module(), Settings("xla-cpu")))
        assert isinstance(finding, RuleFinding) and (finding.edit is not None) == has_edit


@pytest.mark.parametrize(("element", "value", "found"), [
    ("f32", "8", True), ("f32", "3", True), ("f32", "1", False), ("f32", "0", False), ("f32", "nan", False), ("f32", "inf", False),
    ("f32", "1e-40", False), ("f32", "1.17549435e-38", True), ("f32", "8.507059e37", True), ("f32", "1.7014118e38", False),
    ("f64", "1e-40", True), ("f16", "32768", False),
])
def test_a_division_has_a_cheaper_form_where_the_inverse_is_a_normal_number(element: str, value: str, found: bool) -> None:
    text = (f"ENTRY e {{\n  x = {element}[65536] parameter(0)\n  c = {element}[] constant({value})\n"
            f"  b = {element}[65536] broadcast(c), dimensions={{}}\n  ROOT d = {element}[65536] divide(x, b)\n}}\n")
    assert bool(list(find_rule("ALG007")().check(Context(irscope.load(text).module(), Settings("xla-cpu"))))) == found


def test_parameters_of_an_edited_computation_keep_their_numbers() -> None:
    """A text may define them in any order."""
    module = irscope.load("""HloModule m
f {
  b = s32[4] parameter(1)
  a = f32[4] parameter(0)
  ROOT t = (f32[4], s32[4]) tuple(a, b)
}
ENTRY e {
  y = s32[4] parameter(1)
  x = f32[4] parameter(0)
  ROOT r = (f32[4], s32[4]) call(x, y), to_apply=f
}
""").module()
    made = edited(module, {module.graphs["f"]: None})
    assert [[str(param.type) for param in graph.params] for graph in made.graphs.values()] == [["f32[4]", "s32[4]"]] * 2
    assert not any(list(check_graph(graph)) for graph in made.graphs.values())


@pytest.mark.parametrize(("rows", "table", "product", "operators"), [
    ("f32", "f32", "f32", ["slice", "gather"]), ("bf16", "bf16", "bf16", ["slice", "gather"]), ("bf16", "bf16", "f32", ["slice", "gather", "convert"]),
])
def test_rows_that_are_looked_up_have_the_type_of_the_product(rows: str, table: str, product: str, operators: list[str]) -> None:
    """They are converted only where the table has another."""
    module = irscope.load(f"""HloModule m

ENTRY e {{
  i = s32[4] parameter(0)
  t = {table}[32,3] parameter(1)
  b = s32[4,32] broadcast(i), dimensions={{0}}
  n = s32[32] iota(), iota_dimension=0
  r = s32[4,32] broadcast(n), dimensions={{1}}
  c = pred[4,32] compare(b, r), direction=EQ
  h = {rows}[4,32] convert(c)
  ROOT d = {product}[4,3] dot(h, t), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
""").module()
    graph = module.main()
    [finding] = find_rule("ALG009")().check(Context(module, Settings("xla-cpu")))
    assert isinstance(finding, RuleFinding) and finding.edit is not None
    made = built(graph.nodes, [graph.result()], finding.edit, graph.name)
    assert [str(fault) for fault in check_graph(made) if fault.severity is Severity.ERROR] == []
    assert [node.op.name for node in made.nodes if node.op.name in ("slice", "gather", "convert", "dot")] == operators
    given = [np.array([31, 0, 7, 7], np.int32), inputs(graph)[1]]
    for before, after in zip(flatten(evaluate(graph, given)), flatten(evaluate(made, given)), strict=True):
        assert after.dtype == before.dtype
        np.testing.assert_array_equal(after, before)


def test_a_table_of_31_rows_is_multiplied_and_of_32_looked_up() -> None:
    rule, bad = find_rule("ALG009"), find_rule("ALG009").bad[0]
    for rows, count in ((31, 0), (32, 1)):
        text = bad.text.replace("1024", str(rows))
        assert len(list(rule().check(Context(irscope.load(text).module(), Settings("xla-cpu"))))) == count


@pytest.mark.parametrize(("rows", "policy", "operators"), [
    ([8, 9, 6, 7, 5, 4, 3, 2, 1, 0], "irscope", ["slice"] * 8 + ["concatenate"]),
    ([8, 9, 6, 7, 5, 4, 3, 2, 1, 0], "xla-cpu", None),  # XLA makes one slice of two neighbours itself
    ([5, 6, 7, 8, 9, 0, 1, 2, 3, 4], "irscope", ["slice"] * 2 + ["concatenate"]),
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "irscope", ["slice"]),
    ([8, 9, 7, 6, 5, 4, 3, 2, 1, 0], "irscope", None),  # nine slices are still too many
    ([9, 8, 7, 6, 5, 4, 3, 2, 1, 0], "irscope", ["reverse"]), ([9, 8, 7, 6, 5, 4, 3, 2, 1, 0], "xla-cpu", ["reverse"]),
])
def test_pieces_are_joined_again_in_few_moves(rows: list[int], policy: str, operators: list[str] | None) -> None:
    pieces = "".join(f"  k{i} = f32[1,8192] slice(x), slice={{[{row}:{row + 1}], [0:8192]}}\n" for i, row in enumerate(rows))
    module = irscope.load(f"HloModule m\n\nENTRY e {{\n  x = f32[10,8192] parameter(0)\n{pieces}"
                          f"  c = f32[10,8192] concatenate({', '.join(f'k{i}' for i in range(10))}), dimensions={{0}}\n"
                          "  ROOT y = f32[10,8192] tanh(c)\n}\n").module()
    [finding] = find_rule("FUS010")().check(Context(module, Settings(policy)))
    assert isinstance(finding, RuleFinding) and (finding.edit is None) is (operators is None)
    if finding.edit is not None:
        made = built(module.main().nodes, [module.main().result()], finding.edit, "e")
        assert [node.op.name for node in made.nodes if node.op.name not in ("parameter", "tanh", "tuple")] == operators
        x = np.random.default_rng(0).standard_normal((10, 8192)).astype(np.float32)
        np.testing.assert_array_equal(flatten(evaluate(made, [x]))[0], flatten(evaluate(module.main(), [x]))[0])

"""Fixes that are proven: for each candidate a program in which it works, and one in which the compiler's rewriting undoes it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import irscope
from irscope.analysis.reference import evaluate, flatten
from irscope.analysis.types import check_graph
from irscope.analysis.values import written
from irscope.fusion import EdgeVerdict
from irscope.graph import Graph, TensorType
from irscope.lint.context import Context
from irscope.lint.edits import built
from irscope.lint.proven import FixAnswer, ProvenFix, TrialOutcome
from irscope.lint.proven.engine import Engine
from irscope.lint.proven.site import RefusedEdge
from irscope.lint.proven.table import TABLE
from irscope.lint.proven.words import answer_lines, sentence
from irscope.lint.rule import all_rules
from irscope.lint.run import lint_context
from irscope.lint.settings import Settings
from irscope.lint.verdicts import answer
from irscope.source import Severity
from tests.conftest import Cli
from tests.lint.proven_texts import PROGRAMS, hlo

TWICE = PROGRAMS["twice"].text


def refused(text: str, ends: str, policy: str) -> tuple[EdgeVerdict, FixAnswer]:
    """The verdict on an edge of a text, which is not fused, and what would have it fused."""
    module = irscope.load(text).module()
    context = Context(module, Settings(policy))
    (verdict, *_), _ = answer(context, (ends.split()[0], ends.split()[1]))
    assert verdict.fused != "all"
    assert context.costs.engine is not None
    return verdict, context.costs.engine.answer(verdict)


WORKS = [
    ("fenced", "xla-cpu"), ("twice", "xla-cpu"), ("twice", "xla-cpu@jaxlib-0.10.2"), ("cast-after2", "tvm"), ("cast-before", "xla-gpu"),
    ("merge", "tvm"), ("merge", "inductor"), ("merge", "irscope"), ("reduce-unmoved", "tvm"), ("unmoved-tvm", "tvm"),
    ("product-swapped", "tvm"), ("product-swapped", "irscope"), ("reordered", "inductor"), ("slice", "xla-gpu"), ("slice", "xla-cpu"),
    ("slice", "irscope"), ("scatter", "xla-gpu"), ("scatter", "xla-cpu"), ("movement-after", "xla-gpu"), ("read-twice", "irscope"),
    ("reader-first", "irscope"), ("scale-after-product", "xla-cpu"), ("scale-after-product", "tvm"), ("scale-before-sum", "xla-cpu"),
    ("scale-before-sum", "xla-gpu"), ("pieces", "irscope"), ("pieces", "inductor"), ("choose", "xla-cpu"), ("apply-pieces", "inductor"),
    ("reciprocal", "xla-cpu@jaxlib-0.9.2"), ("sum-of-products", "xla-cpu"), ("sum-of-products", "xla-gpu"),
]
"""Programs in which the candidate that they are for works, by policy."""
FAILS = [
    ("copied", "xla-cpu", TrialOutcome.UNDONE), ("copied", "irscope", TrialOutcome.UNDONE), ("unmoved-tvm", "irscope", TrialOutcome.UNDONE),
    ("movement-before2", "irscope", TrialOutcome.UNDONE), ("movement-before2", "xla-cpu", TrialOutcome.REFUSED),
    ("cast-before", "tvm", TrialOutcome.REFUSED), ("movement-after", "tvm", TrialOutcome.REFUSED), ("reader-first", "tvm", TrialOutcome.REFUSED),
    ("choose", "irscope", TrialOutcome.REFUSED), ("apply-pieces", "xla-cpu", TrialOutcome.REFUSED), ("reciprocal", "tvm", TrialOutcome.REFUSED),
    ("pieces", "tvm", TrialOutcome.DEARER),
]
"""Programs in which it does not: the compiler makes the same kernels of it, refuses the edge all the same, or the costs rise."""
OPTIMISED = """HloModule m, is_scheduled=true
f { p = f32[8] parameter(0)
 ROOT n = f32[8] negate(p) }
ENTRY main { x = f32[8] parameter(0)
 a = f32[8] fusion(x), kind=kLoop, calls=f
 ROOT b = f32[8] sort(a), dimensions={0}, to_apply=less }
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT }
"""


def attempted(name: str, policy: str) -> tuple[Context, ProvenFix | TrialOutcome | None]:
    """What becomes of the candidate that a program is for."""
    program = PROGRAMS[name]
    context = Context(irscope.load(program.text).module(), Settings(policy))
    producer, consumer = program.ends.split()
    (verdict, *_), _ = answer(context, (producer, consumer))
    assert verdict.fused != "all" and context.costs.engine is not None
    return context, context.costs.engine.attempt(verdict, program.key)


@pytest.mark.parametrize("name, policy", WORKS)
def test_the_change_fuses_the_edge_and_lowers_the_costs(name: str, policy: str) -> None:
    _, fix = attempted(name, policy)
    assert isinstance(fix, ProvenFix) and fix.key == PROGRAMS[name].key
    assert fix.saves.kernels > 0 or fix.saves.bytes > 0
    assert fix.saves.bytes >= 0 and fix.before and fix.after and fix.is_whole


@pytest.mark.parametrize("name, policy, outcome", FAILS)
def test_a_change_that_does_not_help_is_no_fix(name: str, policy: str, outcome: TrialOutcome) -> None:
    assert attempted(name, policy)[1] is outcome


def test_every_candidate_is_tried_in_a_program() -> None:
    assert {candidate.key for candidate in TABLE} == {program.key for program in PROGRAMS.values()}
    assert {candidate.key for candidate in TABLE} - {PROGRAMS[name].key for name, _ in WORKS} == {"duplicate"}  # every compiler merges it


def applied(name: str) -> tuple[Graph, Graph]:
    """The entry of a program, and with its candidate applied, whatever a policy makes of it."""
    program = PROGRAMS[name]
    graph = irscope.load(program.text).module().main()
    named = {node.name: node for node in graph.nodes}
    producer, consumer = (named[end] for end in program.ends.split())
    edit = next(one for one in TABLE if one.key == program.key).change(RefusedEdge(graph, producer, consumer, "", "", graph.users()))
    assert edit is not None
    return graph, built(graph.nodes, [graph.result()], edit, graph.name)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "sort"])
def test_a_change_keeps_the_value(name: str) -> None:
    before, after = applied(name)
    assert [fault for fault in check_graph(after) if fault.severity is Severity.ERROR] == []
    random = np.random.default_rng(7)
    given = []
    for param in before.params:
        assert isinstance(param.type, TensorType)
        values = random.uniform(0.5, 2.0, param.type.dims())
        given.append((values * 7).astype(np.int32) if param.type.dtype.is_integer else values.astype(param.type.dtype.numpy()))
    for one, other in zip(flatten(evaluate(before, given)), flatten(evaluate(after, given)), strict=True):
        np.testing.assert_allclose(other.astype(np.float64), one.astype(np.float64), rtol=2e-4)


def test_what_was_tried_in_vain_is_said_in_one_sentence() -> None:
    program = PROGRAMS["movement-before2"]
    _, found = refused(program.text, program.ends, "xla-cpu")
    assert found.fix is None
    assert sentence(found).startswith("nothing that irscope tried in the source changes this (tried: the movement before the producer")
    assert answer_lines(found) == [f"no fix: {sentence(found)}"]


def test_a_text_that_is_optimised_already_is_not_changed() -> None:
    _, found = refused(OPTIMISED, "a b", "xla-cpu")
    assert found.fix is None and not found.attempts and "before its optimisation" in sentence(found)


def test_trials_stay_within_their_budget() -> None:
    _, context = refused_context("twice")
    engine = context.costs.engine
    assert engine is not None and 0 <= engine.left <= engine.budget
    engine.left = 0
    (verdict, *_), _ = answer(context, ("t", "s"))
    found = engine.answer(verdict)
    assert found.fix is None and found.untried and "not tried" in sentence(found)


def refused_context(name: str) -> tuple[FixAnswer, Context]:
    """The answer about the edge of a program, and the context that it was found in."""
    program = PROGRAMS[name]
    context = Context(irscope.load(program.text).module(), Settings("xla-cpu"))
    producer, consumer = program.ends.split()
    (verdict, *_), _ = answer(context, (producer, consumer))
    assert context.costs.engine is not None
    return context.costs.engine.answer(verdict), context


def test_the_fix_names_the_lines_of_the_program() -> None:
    _, found = refused(TWICE, "t a", "xla-cpu")
    assert "tanh %t in mlp at net.py:7" in sentence(found) and "multiply %a in mlp at net.py:8" in sentence(found)
    assert found.fix is not None and found.fix.places == ("net.py:7", "net.py:8")
    assert found.fix.gained == (("t", "s"),)


def test_the_json_has_the_fix_as_data(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "twice.hlo"
    path.write_text(TWICE)
    ran = cli("lint", path, "--why-not-fused", "t", "a", "--policy", "xla-cpu", "--format", "json", "--isolated")
    (edge,) = json.loads(ran.stdout)["files"][0]["edges"]
    assert edge["fix"]["proven"] and edge["fix"]["candidate"] == "duplicate-behind-barrier"
    assert edge["fix"]["saves"]["kernels"] == 1 and edge["counterfactual"] == edge["fix"]["text"]


def test_an_edge_has_the_fix_that_was_planned_for_it(tmp_path: Path, cli: Cli) -> None:
    """Of equal layers one is tried; its fix names its operators, and is no fix of the others."""
    lines = [f"""  t{n} = f32[64,64]{{1,0}} tanh({x}), metadata={{op_name="jit(f)/layer_{n}/tanh" source_file="net.py" source_line=7}}
  a{n} = f32[64,64]{{1,0}} multiply(t{n}, {y}), metadata={{op_name="jit(f)/layer_{n}/mul" source_file="net.py" source_line=8}}
  m{n} = f32[64,64]{{1,0}} transpose(t{n}), dimensions={{1,0}}
  b{n} = f32[64,64]{{1,0}} add(m{n}, {y})
""" for n, (x, y) in enumerate((("x", "y"), ("y", "x")))]
    matrix = "f32[64,64]{1,0}"
    results = ", ".join([matrix] * 4)
    path = tmp_path / "layers.hlo"
    path.write_text(f"HloModule m, entry_computation_layout={{({matrix}, {matrix})->({results})}}\n\nENTRY main {{\n"
                    f"  x = {matrix} parameter(0)\n  y = {matrix} parameter(1)\n{''.join(lines)}"
                    f"  ROOT r = ({results}) tuple(a0, b0, a1, b1)\n}}\n")
    ran = cli("lint", path, "--why-not-fused", "--policy", "xla-cpu", "--format", "json", "--isolated")
    edges = json.loads(ran.stdout)["files"][0]["edges"]
    fixes = {(edge["producer"], edge["consumer"]): edge["fix"] for edge in edges if "fix" in edge}
    assert ("t0", "a0") in fixes and ("t1", "a1") not in fixes
    for (producer, consumer), fix in fixes.items():
        assert fix["proven"] and f"%{producer}" in fix["text"] and f"%{consumer}" in fix["text"]


def long(steps: int) -> str:
    """The program ``twice`` with so many more operators, in several kernels, between its input and a summand."""
    operators = {0: "sort({}), dimensions={{0}}, to_apply=less"}
    chain = [f"c{n} = f32[64,64]{{1,0}} " + operators.get(n % 20, "sine({})").format(f"c{n - 1}" if n else "y") for n in range(steps)]
    return TWICE.replace("y = f32[64,64]{1,0} parameter(1)\n", "y = f32[64,64]{1,0} parameter(1)\n  " + "\n  ".join(chain) + "\n").replace(
        "add(s, y)", f"add(s, c{steps - 1})")


@pytest.mark.parametrize("policy", ["xla-cpu", "xla-cpu@jaxlib-0.10.2"])
def test_in_a_large_program_the_kernels_around_the_edge_are_planned_and_all_of_it_in_the_end(policy: str) -> None:
    context = Context(irscope.load(long(200)).module(), Settings(policy))
    (verdict, *_), _ = answer(context, ("t", "a"))
    engine = context.costs.engine
    assert engine is not None
    around, whole = engine.answer(verdict).fix, engine.confirm(verdict).fix
    assert around is not None and not around.is_whole and around.nodes < 200
    assert around.after[-1].startswith("%multiply = f32[64,64] multiply(")
    assert whole is not None and whole.is_whole and (whole.key, whole.saves.kernels) == (around.key, around.saves.kernels)


def test_a_finding_about_a_blocked_fusion_takes_its_help_from_the_same_trial() -> None:
    program = PROGRAMS["scale-before-sum"]
    context = Context(irscope.load(program.text).module(), Settings("xla-gpu"))
    findings = [f for f in lint_context(context, all_rules()) if f.name == "reduce-epilogue"]
    (verdict, *_), _ = answer(context, ("s", "m"))
    assert context.costs.engine is not None
    fix = context.costs.engine.answer(verdict)
    assert fix.fix is not None and [finding.help for finding in findings] == [sentence(fix)]


def started(text: str, ends: str, policy: str) -> tuple[Engine, EdgeVerdict]:
    """The engine of a text, and the verdict on one of its edges."""
    context = Context(irscope.load(text).module(), Settings(policy))
    (verdict, *_), _ = answer(context, (ends.split()[0], ends.split()[1]))
    assert context.costs.engine is not None
    return context.costs.engine, verdict


def test_an_edge_within_one_operator_is_named_by_it() -> None:
    """XLA multiplies by a column in several steps; what is between them is no edge of the text."""
    text = hlo("(f32[512,512]{1,0}, f32[512,1]{1,0})->f32[512,1]{1,0}", """
        x = f32[512,512]{1,0} parameter(0)
        w = f32[512,1]{1,0} parameter(1)
        ROOT d = f32[512,1]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """)
    engine = Context(irscope.load(text).module(), Settings("xla-cpu")).costs.engine
    assert engine is not None
    within = [verdict for plan in engine.planned.plans for verdict in plan.verdicts if written(verdict.producer) is written(verdict.consumer)]
    assert within
    assert {sentence(engine.answer(verdict)) for verdict in within} == {
        "none was tried: both are part of what the compiler makes of %d (dot)"}


SUMMED = hlo("(f32[8,4096]{1,0})->f32[8]{0}", """
    x = f32[8,4096]{1,0} parameter(0)
    z = f32[] constant(0)
    e = f32[8,4096]{1,0} exponential(x)
    s = f32[8]{0} reduce(e, z), dimensions={1}, to_apply=sum
    ROOT r = f32[8]{0} negate(s)
""")
FLAG = "XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type="


def test_an_option_that_fuses_the_edge_but_costs_more_is_named_and_no_fix() -> None:
    engine, verdict = started(SUMMED, "s r", "xla-cpu@jaxlib-0.10.2")
    found = engine.answer(verdict)
    assert found.fix is None
    assert found.behind.startswith(f"under {FLAG} the edge is fused, but the program costs more (2 kernels, ")
    assert found.behind in sentence(found)


def test_an_option_that_fuses_the_edge_and_saves_is_the_fix() -> None:
    engine, verdict = started(SUMMED, "s r", "xla-cpu@jaxlib-0.10.2")
    (flag, does, _), = engine._options
    now = engine._all
    (own,) = [pair for pair in now.edges if (pair[0].name, pair[1].name) == ("s", "r")]
    engine._options = [(flag, does, replace(now, edges={**now.edges, own: "all"}, kernels=now.kernels - 1, bytes=now.bytes - 64))]
    fix = engine.answer(verdict).fix
    assert fix is not None and (fix.key, fix.flag, fix.is_whole, fix.nodes) == ("compiler-option", FLAG, True, engine.size)
    assert fix.how == f"reduce %s and negate %r are fused under {FLAG}; {does}"
    assert (fix.saves.kernels, fix.saves.bytes) == (1.0, 64.0)


def test_a_fix_around_the_edge_that_the_whole_program_does_not_confirm_is_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, verdict = started(long(200), "t a", "xla-cpu")
    around = engine.answer(verdict)
    assert around.fix is not None and not around.fix.is_whole
    monkeypatch.setattr(engine, "_tried", lambda *_: TrialOutcome.DEARER)
    denied = engine.confirm(verdict)
    assert denied.fix is None
    assert [(one.key, one.outcome) for one in denied.attempts[len(around.attempts):]] == [(around.fix.key, TrialOutcome.DEARER)]
    monkeypatch.setattr(engine, "_tried", lambda *_: None)
    assert engine.confirm(verdict) is around  # nothing was found out


def test_a_change_that_cannot_be_planned_and_one_of_an_edge_that_is_fused_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, verdict = started(TWICE, "t a", "xla-cpu")
    key, now = PROGRAMS["twice"].key, engine._all
    (own,) = [pair for pair in now.edges if (pair[0].name, pair[1].name) == ("t", "a")]
    monkeypatch.setattr(engine, "_standing", lambda scope, edit: None if edit is not None else now)
    assert engine.attempt(verdict, key) is TrialOutcome.UNPLANNED
    engine._before.clear()
    monkeypatch.setattr(engine, "_standing", lambda scope, edit: replace(now, edges={own: "all"}))
    assert engine.attempt(verdict, key) is TrialOutcome.NOT_REFUSED


def test_a_slice_of_a_product_or_a_sum_takes_parts_of_all_that_they_read() -> None:
    """Of the batches, rows and columns of a product its operands have two each; what is summed is read whole."""
    _, after = applied("slice-of-batches")
    (product,) = [node for node in after.nodes if node.op.name == "dot"]
    assert [str(operand.type).partition("{")[0] for operand in product.operands] == ["f32[2,3,4]", "f32[4,2,1]"]
    _, after = applied("slice-of-sums")
    (total,) = [node for node in after.nodes if node.op.name == "reduce"]
    assert str(total.operands[0].type).partition("{")[0] == "f32[3,7,2]"


def test_what_the_change_is_for_is_gone() -> None:
    for name, op in (("fenced", "opt-barrier"), ("fenced-two", "opt-barrier"), ("copied-sum", "copy"), ("reduce-unmoved-in-order", "transpose")):
        before, after = applied(name)
        assert op in {node.op.name for node in before.nodes} and op not in {node.op.name for node in after.nodes}

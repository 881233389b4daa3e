"""Every rule documents itself, finds what its bad fixtures hold, and is silent on the good ones."""

from __future__ import annotations

import re
from random import Random

import pytest

import irscope
from irscope.api import scalar_loops
from irscope.lint import Fixture, Rule, all_rules, find_rule, lint_module, select
from irscope.lint.rule import HEADINGS
from irscope.lint.settings import Settings
from irscope.source import Finding, Level, Severity, UserError

RULES = all_rules()


def lint(rule: type[Rule], fixture: Fixture) -> list[Finding]:
    reading = irscope.load(fixture.text, format=fixture.format)
    assert not [f for f in reading.findings if f.severity.name == "ERROR"]
    return lint_module(reading.module(), [rule], Settings(fixture.policy, loops=scalar_loops))


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_a_rule_is_documented(rule: type[Rule]) -> None:
    assert tuple(s.heading for s in rule.sections()) == HEADINGS
    assert all(s.text for s in rule.sections())
    assert rule.title().endswith(".")
    assert re.fullmatch(r"(FUS|BRD|DTY|SHP|LAY|ALG|CTL|MEM|KRN|VEC|RLY)\d{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert len(rule.bad) >= 2
    assert len(rule.good) >= 2


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_a_rule_shows_what_it_claims_in_each_format(rule: type[Rule]) -> None:
    assert rule.formats
    assert {fixture.format for fixture in rule.bad} == set(rule.formats)
    assert {fixture.format for fixture in rule.good} >= set(rule.formats)


def test_codes_and_names_are_unique() -> None:
    assert len({r.code for r in RULES}) == len({r.name for r in RULES}) == len(RULES)


@pytest.mark.parametrize(("rule", "fixture"), [(r, f) for r in RULES for f in r.bad], ids=lambda x: getattr(x, "code", "bad"))
def test_bad_fixtures_are_found(rule: type[Rule], fixture: Fixture) -> None:
    findings = lint(rule, fixture)
    assert findings
    assert not fixture.nodes or {f.node for f in findings} == set(fixture.nodes)
    for finding in findings:
        assert finding.code == rule.code
        place = finding.place()
        assert place is not None
        line = fixture.text.splitlines()[place.line - 1]
        if not finding.node:  # it is about the text, and not about one node
            continue
        if fixture.format == "relay":  # an expression is named by its operator: bindings are not nodes; parameters are
            bound = line[: place.column - 1].endswith(f"%{finding.node} = ")
            assert bound or line[place.column - 1 :].startswith(finding.node), finding.render()
        else:
            assert line[place.column - 1 :].startswith(finding.node), finding.render()


@pytest.mark.parametrize(("rule", "fixture"), [(r, f) for r in RULES for f in r.good], ids=lambda x: getattr(x, "code", "good"))
def test_good_fixtures_are_not(rule: type[Rule], fixture: Fixture) -> None:
    assert [f.render() for f in lint(rule, fixture)] == []


@pytest.mark.parametrize(("rule", "fixture"), [(r, f) for r in RULES for f in r.bad], ids=lambda x: getattr(x, "code", "renamed"))
def test_names_and_percent_signs_change_nothing(rule: type[Rule], fixture: Fixture) -> None:
    """The same graph with every name behind a % gives the same findings."""
    names = re.findall(r"^  (?:ROOT )?(\w+) =", fixture.text, re.M)
    text = fixture.text
    for name in set(names):
        text = re.sub(rf"(?<![\w%=.\-\[]){name}(?=[ ,)])(?!\()", f"%{name}", text)
    found = lint(rule, Fixture(fixture.format, text, (), fixture.policy))
    assert {f.node for f in found} == {f.node for f in lint(rule, fixture)}


def shuffled(text: str, seed: int) -> str:
    """The same computations with their lines in another order, operands still before users, the root last."""
    random = Random(seed)

    def reordered(block: re.Match[str]) -> str:
        statements = re.split(r"\n(?=  [\w. ]+ = )", block[2].rstrip("\n"))
        lines = {re.sub(r"^ROOT ", "", line.strip()).split(" = ")[0]: line for line in statements}
        needs = {n: {w for w in re.findall(r"[\w.]+", line.split(" = ", 1)[1]) if w in lines} for n, line in lines.items()}
        done: list[str] = []
        while len(done) < len(lines):
            ready = [name for name in lines if name not in done and needs[name] <= set(done)]
            done.append(random.choice([name for name in ready if "ROOT" not in lines[name]] or ready))
        return block[1] + "".join(lines[name] + "\n" for name in done) + "}"

    return re.sub(r"^((?:ENTRY )?[\w.]+ \{\n)(.*?)^\}$", reordered, text, flags=re.M | re.S)


IN_ORDER = ("CTL002", "FUS020")
"""Rules on what follows what in the text."""


@pytest.mark.parametrize(
    ("rule", "fixture"),
    [(r, f) for r in RULES if r.code not in IN_ORDER for f in r.bad if f.format == "hlo" and f.text.count("\n") < 60],
    ids=lambda x: getattr(x, "code", "shuffled"),
)
def test_the_order_of_independent_lines_changes_nothing(rule: type[Rule], fixture: Fixture) -> None:
    text = shuffled(fixture.text, 3)
    assert sorted(text.split("\n")) == sorted(fixture.text.split("\n"))
    assert len(lint(rule, Fixture("hlo", text, (), fixture.policy))) == len(lint(rule, fixture))


def test_a_rule_is_found_by_code_and_name() -> None:
    assert find_rule("dty001").name == "float64-leak"
    assert find_rule("float64-leak").code == "DTY001"
    with pytest.raises(UserError, match="there is no rule float64-leek") as error:
        find_rule("float64-leek")
    assert "float64-leak" in error.value.help


def test_select_takes_families_codes_and_names() -> None:
    assert {r.code[:3] for r in select(["DTY"], [])} == {"DTY"}
    assert [r.code for r in select(["DTY001", "cast-ping-pong", "dead-code"], ["DTY003"])] == ["ALG003", "DTY001"]
    assert {r.code for r in select(["DTY"], ["DTY003", "int64-indices"])} == {r.code for r in RULES if r.code[:3] == "DTY"} - {"DTY003", "DTY007"}
    assert not {r.code for r in select([], ["ALG"])} & {"ALG002", "ALG003"}


def test_some_rules_run_only_when_they_are_named() -> None:
    silent = {r.code for r in RULES if not r.default}
    assert "KRN001" in silent
    assert not silent & {r.code for r in select([], [])}
    assert {r.code for r in select(["krn001"], [])} == {"KRN001"}
    assert select(["all"], []) == [rule for rule in RULES if not rule.option]


def test_what_is_wrong_or_costly_is_looked_for_without_being_selected() -> None:
    """A rule that is off by default finds facts; RLY030 is a demand with an option of its own."""
    assert {r.code for r in RULES if r.severity > Severity.INFO and not r.default} == {"RLY030"}
    assert all((r.level() is Level.FACT) == (r.severity is Severity.INFO) for r in RULES)


def test_the_strict_rule_looks_at_the_part_of_a_text_that_is_the_module() -> None:
    """What stands before the module, such as an open quote, is not read; of a log, each module has its own findings."""
    rule = find_rule("RLY030")
    module = 'def @main(%x: float32) {\n  %0 = nn.relu(%x);\n  return %0;\n}\n'
    surrounded = f'print("loaded\n{module}'
    log = f"Print IR before: FoldConstant\n{module}Print IR after: FoldConstant\n{module.replace('return %0;', '%0')}"
    for text, places in ((surrounded, [["2:1", "4:3", "4:12"]]), (log, [["2:1", "4:3", "4:12"], ["7:1"]])):
        reading = irscope.load(text, format="relay")
        found = [[str(f.place()) for f in lint_module(made, [rule], Settings("tvm"))] for made in reading.modules]
        assert found == places

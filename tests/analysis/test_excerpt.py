"""What is picked from a graph is a module that reads, types and runs."""
from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope import RunOptions
from irscope.analysis.excerpt import excerpt
from irscope.analysis.neighbourhood import around, find_node
from irscope.formats.hlo import print_module
from tests.analysis.test_regions import training_step
from tests.analysis.texts import FUSED, LOOP, survey
from tests.conftest import Cli


@pytest.mark.parametrize(("text", "name", "radius"), [
    (FUSED, "biased", 1), (LOOP, "run", 1), (training_step(), "d3", 2), (training_step(), "out", 1), (training_step(), "x0", 0),
])
def test_a_neighbourhood_is_a_module_that_runs(text: str, name: str, radius: int) -> None:
    facts = survey(text)
    graph, centre = find_node(facts, name)
    picked = around(facts, graph, centre, radius)
    part = excerpt(facts.module, graph, picked)
    names = {node.name for node in part.main().nodes}
    assert {node.name for node in picked if node.op.name not in ("tuple", "parameter")} <= names
    reading = irscope.load(print_module(part))
    assert reading.ok, [finding.render() for finding in reading.findings]
    result = irscope.run(reading, RunOptions(check=True))
    assert result.ok
    assert result.comparisons


def test_show_writes_the_module(tmp_path: Path, cli: Cli) -> None:
    source, part = tmp_path / "m.hlo", tmp_path / "part.hlo"
    source.write_text(training_step())
    assert cli("show", source, "--around", "%d3", "--radius", "1", "-o", part).exit_code == 0
    assert cli("compile-and-run", part, "--check").exit_code == 0
